# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Written English to words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.speech.text import normalise
from omni_ros.speech.text_numbers import cardinal, decimal, ordinal, year
from omni_ros.speech.voice import SpeechRefused


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "zero"), (7, "seven"), (13, "thirteen"), (20, "twenty"), (42, "forty-two"),
     (100, "one hundred"), (101, "one hundred one"), (1000, "one thousand"),
     (12345, "twelve thousand three hundred forty-five"), (1_000_001, "one million one"),
     (-3, "minus three")],
)
def test_whole_numbers(number, words):
    assert cardinal(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "first"), (2, "second"), (3, "third"), (5, "fifth"), (8, "eighth"), (9, "ninth"),
     (12, "twelfth"), (20, "twentieth"), (21, "twenty-first"), (100, "one hundredth")],
)
def test_ordinals(number, words):
    assert ordinal(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(1984, "nineteen eighty-four"), (1900, "nineteen hundred"), (1905, "nineteen oh five"),
     (2000, "two thousand"), (2007, "two thousand seven"), (2026, "twenty twenty-six")],
)
def test_years(number, words):
    assert year(number) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [("3.05", "three point zero five"), (".5", "zero point five"), ("-2", "minus two"),
     ("1,234.5", "one thousand two hundred thirty-four point five"), ("007", "zero zero seven")],
)
def test_decimals(text, words):
    assert decimal(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It costs $3.50.", "It costs three dollars and fifty cents."),
        ("$0.99", "ninety nine cents"), ("$1", "one dollar"),
        ("\u20ac1,200", "one thousand two hundred euros"),
        ("$2.5M", "two point five million dollars"), ("-$3.00", "minus three dollars"),
        ("4.5 kg at 0.25 m/s",
         "four point five kilograms at zero point two five meters per second"),
        ("1 kg", "one kilogram"), ("9.8 m/s\u00b2", "nine point eight meters per second squared"),
        ("21\u00b0C", "twenty one degrees Celsius"), ("45\u00b0 left", "forty five degrees left"),
        ("4 m\u00b2", "four square meters"), ("5 \u03a9", "five ohms"), ("10 \u00b5m", "ten micrometers"),
        ("5 in a row", "five in a row"), ("5in long", "five inches long"),
        ("12V 3A", "twelve volts three amps"), ("2.4 GHz", "two point four gigahertz"),
        ("3:05 pm", "three oh five P M"), ("14:30", "fourteen thirty"),
        ("12:00", "twelve o'clock"), ("7 a.m. today", "seven A M today"),
        ("Come at 3 p.m.", "Come at three P M."),
        ("2024-11-30", "November thirtieth, twenty twenty four"),
        ("11/30/2024", "November thirtieth, twenty twenty four"),
        ("Nov. 3rd, 1999", "November third, nineteen ninety nine"), ("May 5", "May fifth"),
        ("in 1984", "in nineteen eighty four"), ("the 1990s", "the nineteen nineties"),
        ("1984 bolts", "one thousand nine hundred eighty four bolts"),
        ("Dr. Smith vs. Mr. Lee", "doctor Smith versus mister Lee"),
        ("fruit, e.g. apples, etc.", "fruit, for example apples, et cetera."),
        ("no. 5 and #1", "number five and number one"), ("St. Louis", "Saint Louis"),
        ("the U.S. flag", "the U S flag"), ("Ph.D. student", "P H D student"),
        ("555-1234", "five five five, one two three four"),
        ("joe.doe@example.com", "joe dot doe at example dot com"),
        ("https://www.example.com/a", "example dot com slash a"),
        ("See example.org.", "See example dot org."),
        ("192.168.0.1", "one hundred ninety two dot one hundred sixty eight dot zero dot one"),
        ("v1.2.3", "version one point two point three"), ("version 2.0", "version two point zero"),
        ("joint_3 of /front_camera/image_raw", "joint three of front camera image raw"),
        ("1/2 full", "one half full"), ("3 3/4 cups", "three and three quarters cups"),
        ("2\u00bd", "two and one half"), ("3-5 pages", "three to five pages"),
        ("10\u201320 kg", "ten to twenty kilograms"), ("a 3 x 4 grid", "a three by four grid"),
        ("5x faster", "five times faster"), ("50% off", "fifty percent off"),
        ("the 1st, 22nd and 100th", "the first, twenty second and one hundredth"),
        ("1,234,567", "one million two hundred thirty four thousand five hundred sixty seven"),
        ("USB and GPU's", "U S B and G P U's"), ("NASA", "nasa"), ("R2D2", "R two D two"),
        ("A & B", "A and B"), ("x = 4", "x equals four"), ("\u00b12 mm", "plus or minus two millimeters"),
        ("\u03c0 is big", "pi is big"), ("and/or", "and or"),
        ("STOP NOW PLEASE", "stop now please"),
    ],
)
def test_what_is_written_short_is_said_in_full(text, words):
    assert normalise(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Wait... what?! Really!!!", "Wait. what? Really!"),
        ('He said "hello" (quietly) and left.', "He said hello, quietly, and left."),
        ("It's John's 'book'.", "It's John's book."),
        ("One \u2014 two; three:", "One, two; three:"),
        ("**Bold** and `code`, [a link](http://x.y)", "Bold and code, a link"),
        ("good job \U0001f44d\U0001f3fd!", "good job!"), ("a\u200bb c\x00d", "ab c d"),
        ("\uff21\uff11 \ufb01ne", "A one fine"), ("na\u00efve caf\u00e9", "na\u00efve caf\u00e9"),
        ("<b>bold</b> text", "bold text"), ("one,two , three", "one, two, three"),
    ],
)
def test_marks_are_kept_where_they_are_heard_and_dropped_where_not(text, words):
    assert normalise(text) == words


@pytest.mark.parametrize("text", ["", "  ", "...", "\U0001f600\U0001f600", "\u2014", "'\"", "(*)"])
def test_what_has_nothing_to_say_is_empty(text):
    assert normalise(text) == ""


@pytest.mark.parametrize(
    ("text", "script"),
    [("Say \u043f\u0440\u0438\u0432\u0435\u0442 to him", "Cyrillic"), ("\u65e5\u672c\u8a9e", "Cjk"),
     ("\u0645\u0631\u062d\u0628\u0627", "Arabic"), ("\u05e9\u05dc\u05d5\u05dd", "Hebrew"),
     ("\u0928\u092e\u0938\u094d\u0924\u0947", "Devanagari"), ("\uc548\ub155", "Hangul")],
)
def test_another_script_is_refused_by_its_name(text, script):
    with pytest.raises(SpeechRefused, match=f"written in {script} letters"):
        normalise(text)


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=200))
def test_whatever_the_text_it_becomes_words_and_plain_marks_or_is_refused(text):
    try:
        words = normalise(text)
    except SpeechRefused:
        return
    assert re.fullmatch(r"(?:[^\W_]|[\s',;:.!?])*", words), words
    assert not re.search(r"[,;:.!?]\s*[,;:.!?]", words)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789.,:/-+$%x kgmsAaVv@#()\u00b0\u20ac", max_size=60))
def test_no_digit_is_left_whatever_numbers_are_made_of(text):
    assert not re.search(r"[0-9]", normalise(text))


def test_a_very_long_text_takes_time_in_proportion():
    assert normalise("a1 " * 2000).count("one") == 2000
    assert normalise("9" * 5000).count("nine") == 5000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-1/2", "minus one half"), ("$-3.50", "minus three dollars and fifty cents"),
        ("$5-$10", "five to ten dollars"), ("5%-10%", "five percent to ten percent"),
        ("5cm-10cm", "five centimeters to ten centimeters"),
        ("1.5e-3", "one point five times ten to the power of minus three"),
        ("x^2.", "x squared."), ("2^10", "two to the power of ten"), ("0x1F", "hex one F"),
        ("16:9", "sixteen to nine"), ("at 3:15", "at three fifteen"), ("the '90s", "the nineties"),
        ("5 May 2024", "May fifth, twenty twenty four"),
        ("World War II.", "World War two."), ("Henry VIII", "Henry the eighth"),
    ],
)
def test_no_sign_range_or_exponent_is_lost(text, words):
    assert normalise(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1.234,56 \u20ac", "one thousand two hundred thirty four euros and fifty six cents"),
        ("\u20ac1.234,56", "one thousand two hundred thirty four euros and fifty six cents"),
        ("It weighs 3,5 kg.", "It weighs three point five kilograms."),
        ("1,5-2,5 m", "one point five to two point five meters"), ("-0,125", "minus zero point one two five"),
        ("1.234.567", "one million two hundred thirty four thousand five hundred sixty seven"),
        ("1.000.000, he said", "one million, he said"),
        ("version 1.234.567", "version one point two hundred thirty four point five hundred sixty seven"),
        ("2 000 000 and 2\u202f500", "two million and two thousand five hundred"),
        ("10'000", "ten thousand"), ("30.11.2024", "November thirtieth, twenty twenty four"),
        ("30/11/2024", "November thirtieth, twenty twenty four"),
        # What English reads otherwise, or may be a list, stays what it is.
        ("1.234", "one point two three four"), ("1,234", "one thousand two hundred thirty four"),
        ("at (3,5) now", "at, three, five, now"), ("1,2,3", "one, two, three"),
        ("joints 3,5 and 7", "joints three, five and seven"),
        ("3,5 and 7,5", "three point five and seven point five"),
        ("100 200 300", "one hundred two hundred three hundred"),
    ],
)
def test_numbers_as_europe_writes_them_keep_their_value(text, words):
    assert normalise(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("00:1A:2b:3C:4D:5E", "zero zero, one A, two B, three C, four D, five E"),
        ("00-1a-2b-3c-4d-5e.", "zero zero, one A, two B, three C, four D, five E."),
        ("10.0.0.7:8080", "ten dot zero dot zero dot seven, port eight zero eight zero"),
        ("10.0.0.0/8", "ten dot zero dot zero dot zero, slash eight"),
        ("at 192.168.100.200.", "at one hundred ninety two dot one hundred sixty eight dot one hundred dot "
         "two hundred."),
        ("fe80::1", "F E eight zero, double colon, one"), ("::1", "double colon, one"),
        ("std::vector", "std: vector"), ("run file.py.", "run file dot py."), ("a.b.c", "A B C"),
    ],
)
def test_addresses_of_machines_and_names_of_files_are_spelled(text, words):
    assert normalise(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Apollo XIII", "Apollo thirteen"), ("Robot II is off.", "Robot two is off."),
        ("Super Bowl XX", "Super Bowl twenty"), ("Zone IV", "Zone four"), ("World War II", "World War two"),
        ("King Charles I", "King Charles the first"), ("Pope John XXIII", "Pope John the twenty third"),
        ("Henry V", "Henry the fifth"), ("Henry I saw.", "Henry I saw."),
        ("the Model I trained", "the Model I trained"), ("\u2167", "eight"),
    ],
)
def test_a_roman_numeral_is_an_ordinal_only_of_a_king_or_the_like(text, words):
    assert normalise(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [("\x1b[31mred\x1b[0m", "red"), ("R&amp;D", "R and D"), ("<!-- no --> yes", "yes"),
     ("-v fr --help", "v fr help"), ("[[h@l]]", "h at l,")],
)
def test_what_steers_terminals_browsers_and_espeak_is_not_passed_on(text, words):
    assert normalise(text) == words


@pytest.mark.parametrize(
    "text", ["ıe", "İ.e. this", "Aprıl 5", "fıg. 3", "mın. 5", "İnc.", "CİTY", "1İn", "ſec. 2", "5\u212a"]
)
def test_letters_that_only_look_like_others_where_case_does_not_matter_are_said(text):
    assert re.fullmatch(r"[A-Za-z ,.]+", normalise(text))


def test_a_rule_that_fails_refuses_the_text_and_not_the_voice(monkeypatch):
    def broken(text):
        raise KeyError("aprıl")

    monkeypatch.setattr("omni_ros.speech.text_rules.RULES", (broken,))
    with pytest.raises(SpeechRefused, match="Hello.*word it otherwise"):
        normalise("Hello.")
