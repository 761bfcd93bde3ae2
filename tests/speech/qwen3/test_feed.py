# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re

import pytest

from omni_ros.speech.qwen3.feed import TextFeed, sentence_ended, settled

#: Splits as Qwen's tokenizer does before it looks at letters.
WORDS = re.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\w]?[^\W\d_]+|\d|\s?[^\s\w]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def encode(text: str) -> list[tuple[int, int]]:
    """One token a word; its id tells the word."""
    return [(hash(match[0]), match.end()) for match in WORDS.finditer(text)]


def spans(text, span_tokens: int = 1000) -> list[str]:
    """What each span says."""
    feed = TextFeed(text, encode, span_tokens=span_tokens)
    found, start = [], 0
    while feed.begin_span():
        while (token := feed.next()) is not None:
            end = token.end
        found.append(feed.text[start:end])
        start = end
    return found


def ids(text) -> list[int]:
    feed = TextFeed(text, encode, span_tokens=1000)
    found = []
    while feed.begin_span():
        while (token := feed.next()) is not None:
            found.append(token.id)
    return found


@pytest.mark.parametrize("text", [
    "Hello there, I'm a robot that doesn't say 3.5 as 35.", "我叫通义千问，是阿里云的开源大模型。",
    "One.\n\nTwo (or three) -- that's it!", "a  b   c\n d", "x",
])  # fmt: skip
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pieces_give_the_tokens_of_the_whole_text(text, size):
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    feed = TextFeed(pieces, encode, span_tokens=1000)
    feed.begin_span()
    found = []
    while feed._pull():
        pass
    found = [token.id for token in feed._ready]
    assert found == [id for id, _ in encode(text)]


@pytest.mark.parametrize("text, end", [("", 0), ("Hel", 0), ("Hello wor", 5), ("Hello.", 5),
                                       ("Hello. ", 5), ("3.5", 1), ("我叫，是", 2), ("né", 0),
                                       ("ne\u0301e", 0)])
def test_a_word_is_settled_when_something_else_follows_it(text, end):
    assert settled(text) == end


def test_no_piece_is_asked_for_while_tokens_are_left():
    asked = []

    def pieces():
        for piece in ("One two three ", "four five ", "six."):
            asked.append(piece)
            yield piece

    feed = TextFeed(pieces(), encode, span_tokens=1000)
    assert asked == []
    feed.begin_span()
    assert len(asked) == 1
    assert [feed.next().end for _ in range(3)] == [3, 7, 13] and len(asked) == 1
    feed.next()
    assert len(asked) == 2


def test_a_sentence_that_has_come_is_ended_before_more_is_asked_for():
    def pieces():
        yield "One two."
        raise AssertionError("asked for more")

    feed = TextFeed(pieces(), encode, span_tokens=1000)
    feed.begin_span()
    said = []
    while (token := feed.next()) is not None:
        said.append(token.end)
    assert said == [3, 7, 8]


def test_sentences_that_come_together_are_one_span():
    assert spans("One. Two. Three.") == ["One. Two. Three."]
    assert spans(["One. Two.", " Three."]) == ["One. Two.", " Three."]


def test_a_span_opens_without_the_space_before_its_first_word():
    assert ids(["One.", " Two."]) == ids("One.") + ids("Two.")


def test_empty_pieces_are_nothing_new():
    assert spans(["", "On", "", "", "e", "", "."]) == ["One."]


def test_a_clause_is_ended_when_the_text_pauses_behind_it_and_not_before():
    assert spans(["One two,", " three."]) == ["One two, three."]
    assert spans(["One two,", "", " three."]) == ["One two,", " three."]
    assert spans(["One", "", "", " two."]) == ["One two."]
    assert spans(["At 3.", "", "5 metres."]) == ["At 3.5 metres."]


def test_waiting_for_text_ends_when_nobody_wants_it_any_more():
    asked = []

    def pieces():
        while True:
            asked.append(1)
            yield "" if len(asked) > 1 else "One two three"

    feed = TextFeed(pieces(), encode, span_tokens=100, wanted=lambda: len(asked) < 9)
    assert feed.begin_span()
    assert [feed.next().end for _ in range(2)] == [3, 7]
    assert feed.next() is None and len(asked) == 9
    assert not feed.begin_span()


def test_text_of_spaces_alone_has_no_span():
    assert spans("  \n ") == [] and spans([]) == [] and spans(["", " "]) == []


def test_a_long_text_is_cut_at_the_last_sentence_that_fits_the_context():
    text = " ".join(f"This is sentence number {number} of many." for number in "abcdefgh")
    found = spans(text, span_tokens=20)
    assert "".join(found) == text
    assert all(len(encode(span)) <= 20 and span.endswith(".") for span in found)


def test_a_sentence_longer_than_the_context_is_cut_at_a_clause_and_at_worst_at_a_word():
    clauses = "one two three four five six, " * 6
    assert all(span.strip().endswith(",") for span in spans(clauses.strip(), span_tokens=26)[:-1])
    words = "word " * 50
    assert [len(encode(span)) for span in spans(words.strip(), span_tokens=20)] == [20, 20, 10]


@pytest.mark.parametrize("text, ended", [
    ("It is done.", True), ("Is it?", True), ('He said "go."', True), ("好。", True), ("Wait…", True),
    ("Dr.", False), ("about 3.", False), ("J.", False), ("done", False), ("one,", False), ("", False),
    ("i.e.", False), ("(see fig.", False), (".", False),
])  # fmt: skip
def test_a_full_stop_ends_a_sentence_unless_it_may_stand_within_one(text, ended):
    assert sentence_ended(text) == ended


def test_a_piece_that_cannot_be_said_ends_the_text_and_is_kept_for_later():
    def check(text: str) -> None:
        if "!" in text:
            raise ValueError("no shouting")

    feed = TextFeed(["One two ", "three!"], encode, span_tokens=100, check=check)
    feed.begin_span()
    said = []
    while (token := feed.next()) is not None:
        said.append(token.end)
    assert said[:2] == [3, 7] and feed.all_text
    assert str(feed.failure) == "no shouting"


@pytest.mark.parametrize("index, clause", [(0, "At 3.5 metres,"), (4, "At 3.5 metres,"),
                                           (14, "it stops."), (15, "it stops."), (40, "Good")])
def test_the_clause_around_a_character_is_given_as_it_was_written(index, clause):
    feed = TextFeed("At 3.5 metres, it stops. Good", encode, span_tokens=100)
    while feed._pull():
        pass
    assert feed.clause_at(index) == clause


def test_there_is_no_clause_in_no_text():
    assert TextFeed("", encode, span_tokens=100).clause_at(0) == ""
