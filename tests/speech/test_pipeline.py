# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What all voices share, with a voice that says nothing but numbers."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from omni_ros.speech.pipeline import MAX_CHARACTERS, Script, Spoken, Utterances
from omni_ros.speech.voice import SpeechError, SpeechRefused


def words(text: str) -> str:
    if "no" in text.split():
        raise SpeechRefused("no is not said")
    return text if any(char.isalnum() for char in text) else ""


def said(script: Script) -> list[tuple[str, bool]]:
    return [(clause.text, script.over) for clause, _ in script.clauses() if clause is not None]


def test_a_whole_text_is_known_to_end_with_its_last_clause():
    assert said(Script("One. Two. ...", words)) == [("One.", False), ("Two.", True)]


def test_a_whole_text_is_refused_before_anything_is_said():
    with pytest.raises(SpeechRefused, match="no is not said"):
        Script("One. Two. Oh no .", words)


@pytest.mark.parametrize("text", ["", "  ", "...!"])
def test_a_text_with_nothing_to_say_is_refused(text):
    with pytest.raises(SpeechRefused, match="nothing in it that can be spoken"):
        Script(text, words)
    with pytest.raises(SpeechRefused, match="nothing in it that can be spoken"):
        list(Script([text], words).clauses())


def test_pieces_are_said_as_soon_as_they_make_a_clause():
    asked = []

    def pieces():
        for piece in ("One. ", "Two and ", "three. ", "Four"):
            asked.append(piece)
            yield piece

    script = Script(pieces(), words)
    found = (entry[0].text for entry in script.clauses() if entry[0] is not None)
    assert next(found) == "One."
    assert asked == ["One. ", "Two and "]
    assert list(found) == ["Two and three.", "Four"]


def test_a_refused_piece_comes_after_all_that_was_before_it():
    clauses = Script(["One is here. ", "Oh no . ", "Three"], words).clauses()
    heard = []
    with pytest.raises(SpeechRefused):
        for clause, _ in clauses:
            heard += [clause.text] if clause else []
    assert heard == ["One is here."]


def test_text_longer_than_anybody_listens_to_is_refused():
    with pytest.raises(SpeechRefused, match=f"{MAX_CHARACTERS + 1} characters"):
        Script("x" * (MAX_CHARACTERS + 1), words)


def test_a_piece_that_is_no_text_is_a_mistake_of_the_caller():
    with pytest.raises(TypeError, match="a piece of text is 3"):
        list(Script([3], words).clauses())


def test_characters_are_counted_on_to_all_that_were_given():
    script = Script("One two. Three.  ", words)
    spoken = Spoken(script)
    reached = []
    for clause, _ in script.clauses():
        for share in (0.5, 1.0):
            chunk = spoken.chunk(np.zeros(4, np.float32), clause, share, {}, share == 1.0)
            reached.append((chunk.first_sample, chunk.text_end, chunk.last))
    assert reached == [(0, 4, False), (4, 8, False), (8, 12, False), (12, 17, True)]


# -- one utterance at a time --------------------------------------------------------------------


def counting(wanted):
    script = Script("One. Two. Three.", words)
    spoken = Spoken(script)
    for clause, _ in script.clauses():
        yield None
        yield spoken.chunk(np.zeros(1, np.float32), clause, 1.0, {}, True)


def test_an_utterance_ends_with_its_last_chunk():
    assert [c.last for c in Utterances("v").begin(counting)] == [False, False, True]


def test_an_aborted_utterance_ends_without_a_last_chunk():
    utterances = Utterances("v")
    chunks = utterances.begin(counting)
    next(chunks)
    utterances.abort()
    assert list(chunks) == []
    assert [c.last for c in utterances.begin(counting)] == [False, False, True]


def test_a_chunk_that_was_made_while_an_abort_came_is_not_given():
    utterances = Utterances("v")

    def aborted(wanted):
        spoken = Spoken(Script("One.", words))
        clause = next(iter(Script("One.", words).clauses()))[0]
        utterances.abort()
        yield spoken.chunk(np.zeros(1, np.float32), clause, 1.0, {}, True)

    assert list(utterances.begin(aborted)) == []


def test_an_abort_between_utterances_does_not_reach_the_next():
    utterances = Utterances("v")
    list(utterances.begin(counting))
    utterances.abort()
    assert len(list(utterances.begin(counting))) == 3


def test_one_that_was_left_half_said_gives_way():
    utterances = Utterances("v")
    left = utterances.begin(counting)
    next(left)
    assert len(list(utterances.begin(counting))) == 3
    assert list(left) == []


def test_a_second_one_is_refused_while_a_thread_works_on_the_first():
    utterances = Utterances("v")
    inside, go_on = threading.Event(), threading.Event()

    def slow(wanted):
        inside.set()
        go_on.wait(5)
        yield from counting(wanted)

    first = utterances.begin(slow)
    thread = threading.Thread(target=lambda: list(first))
    thread.start()
    inside.wait(5)
    with pytest.raises(SpeechError, match="is saying something else"):
        utterances.begin(counting)
    go_on.set()
    thread.join(5)
    assert len(list(utterances.begin(counting))) == 3


def test_a_closed_voice_begins_nothing():
    utterances = Utterances("v")
    chunks = utterances.begin(counting)
    next(chunks)
    utterances.close()
    utterances.close()
    assert list(chunks) == []
    with pytest.raises(SpeechError, match="voice v is closed"):
        utterances.begin(counting)


def test_an_error_ends_the_utterance_and_not_the_voice():
    utterances = Utterances("v")

    def broken(wanted):
        yield None
        raise SpeechRefused("not this")

    with pytest.raises(SpeechRefused):
        list(utterances.begin(broken))
    assert len(list(utterances.begin(counting))) == 3
