# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Where text is cut into clauses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.speech.clauses import CLAUSE_S, LONG, LONGEST, PARAGRAPH_S, SENTENCE_S, Clause, Clauses


def cut(text: str, cuts: tuple[int, ...] = ()) -> list[Clause]:
    """Return the clauses of a text that comes in pieces."""
    clauses, found, start = Clauses(), [], 0
    for end in (*sorted(cuts), len(text)):
        found += clauses.feed(text[start:end])
        start = end
    return [*found, *clauses.finish()]


def texts(text: str) -> list[str]:
    return [clause.text for clause in cut(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Hello. I am here!", ["Hello.", "I am here!"]),
        ("Is Dr. Smith in? Yes.", ["Is Dr. Smith in?", "Yes."]),
        ("It is 3.5 m, e.g. there. Go.", ["It is 3.5 m, e.g. there.", "Go."]),
        ("In the U.S. they do. Not here.", ["In the U.S. they do.", "Not here."]),
        ("Leave at 6 p.m. Then rest.", ["Leave at 6 p.m.", "Then rest."]),
        ("J. R. Tolkien wrote it.", ["J. R. Tolkien wrote it."]),
        ("See no. 5 first. The answer is no. Really.",
         ["See no. 5 first.", "The answer is no.", "Really."]),
        ("Go to example.com now. Thanks.", ["Go to example.com now.", "Thanks."]),
        ("Wait... what? No... never.", ["Wait... what?", "No... never."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("What?! Really!!! Yes", ["What?!", "Really!!!", "Yes"]),
        ("1. Do this.\n2. Do that.", ["1. Do this.", "2. Do that."]),
        ("A title\n\nThen text", ["A title", "Then text"]),
        ("one line\ngoes on", ["one line\ngoes on"]),
        ("Nobody but I. You too.", ["Nobody but I.", "You too."]),
        ("", []), ("  \n ", []),
    ],
)
def test_a_sentence_ends_where_a_reader_would_end_it(text, wanted):
    assert texts(text) == wanted


@settings(max_examples=300, deadline=None)
@given(
    st.text(alphabet="ab .,!?\n1A-\"'x", max_size=400),
    st.lists(st.integers(0, 400), max_size=40),
)
def test_the_cuts_are_the_same_whatever_pieces_the_text_comes_in(text, places):
    assert cut(text, tuple(min(place, len(text)) for place in places)) == cut(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=900))
def test_no_character_is_lost_and_none_is_said_twice(text):
    clauses = cut(text)
    assert all(text[c.start:c.end] == c.text for c in clauses)
    assert "".join("".join(c.text for c in clauses).split()) == "".join(text.split())
    assert all(a.end <= b.start for a, b in zip(clauses, clauses[1:], strict=False))
    assert all(len(c.text) <= LONGEST for c in clauses)


def test_a_long_sentence_is_cut_at_a_comma_and_a_short_one_is_not():
    assert len(cut("I see a block, a pad, and an arm.")) == 1
    long = cut("I see " + "a red block, " * 20 + "and a pad.")
    assert len(long) > 1
    assert all(c.text.endswith(",") and c.pause_s == CLAUSE_S for c in long[:-1])
    assert all(len(c.text) <= LONG + len("a red block, ") for c in long)


def test_a_sentence_without_a_comma_is_cut_between_words():
    clauses = cut("word " * 150)
    assert all(set(c.text.split()) == {"word"} and c.pause_s == 0 for c in clauses)


def test_a_word_without_an_end_is_cut_anywhere():
    assert [len(c.text) for c in cut("x" * (2 * LONGEST + 5))] == [LONGEST, LONGEST, 5]


def test_pauses_are_longer_behind_paragraphs():
    first, second, third = cut("One.\n\nTwo. Three.")
    assert (first.pause_s, second.pause_s) == (PARAGRAPH_S, SENTENCE_S)


def test_a_sentence_is_there_once_what_follows_is():
    clauses = Clauses()
    assert clauses.feed("It costs 3.") == []
    assert clauses.feed("50 in all. ") == []
    assert [c.text for c in clauses.feed("Do you")] == ["It costs 3.50 in all."]


def test_a_sentence_is_not_kept_back_when_the_text_pauses():
    clauses = Clauses()
    assert clauses.feed("Let me look. ") == []
    assert [c.text for c in clauses.pause()] == ["Let me look."]
    assert clauses.pause() == []
    assert [c.text for c in [*clauses.feed("It is red."), *clauses.finish()]] == ["It is red."]


@pytest.mark.parametrize("text", ["Ask Dr.", "I see a", "At 3"])
def test_what_is_no_sentence_waits_for_more_even_if_the_text_pauses(text):
    clauses = Clauses()
    assert [*clauses.feed(text), *clauses.pause()] == []


def test_characters_are_counted_with_those_that_are_white_space():
    clauses = Clauses()
    clauses.feed("  One. ")
    clauses.finish()
    assert clauses.characters == 7


def test_a_number_whose_point_came_before_its_decimals_is_not_cut_by_a_pause():
    clauses = Clauses()
    assert clauses.feed("It weighs 3.") == [] == clauses.pause()
    assert clauses.feed("5 kg.") == []
    assert [clause.text for clause in clauses.pause()] == ["It weighs 3.5 kg."]
