# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Written English to words: numbers, money, units, times, dates, abbreviations, addresses.

What is left has letters, apostrophes and the marks , ; : . ! ? only. A text of another script is
refused, because half a sentence may say the opposite of the whole.
"""

from __future__ import annotations

import html
import re
import unicodedata

from omni_ros.speech import text_rules as rules
from omni_ros.speech.text_notations import notations
from omni_ros.speech.text_tables import FRACTIONS, GREEK, SIGNS
from omni_ros.speech.voice import SpeechRefused

_QUOTES = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"', "\u2212": "-",
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2026": "...", "\u00a0": " ", "\u3002": ".",
    "\u3001": ",", "\u00b5": "\u03bc", "\u2044": "/",
    "\u2116": "no. ", **{chr(0x2160 + step): str(step + 1) for step in range(12)},
    # To `re`, which takes them for an i where case does not matter, and to nothing else.
    "\u0130": "I", "\u0131": "i",
})
#: What colours a terminal, and entities of HTML.
_TERMINAL, _ENTITY = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]"), re.compile(r"&(?:#?\w{1,10});")
#: Spaces that keep a number's groups of three in one line.
_GROUPED = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
#: Said by their names where they stand alone, as in "2 pi" or an angle.
_LETTER = re.compile(r"[^\W\d_]")
#: No letters, though Unicode calls them so: masculine and feminine ordinals, and the like.
_NOT_REFUSED = ("LATIN", "MODIFIER", "FEMININE", "MASCULINE")

#: Unicode's categories of signs, of what is not assigned, of marks that join others.
_NO_TEXT = ("So", "Sk", "Cs", "Co", "Cn", "Cf", "Mn", "Me")


def normalise(text: str) -> str:
    """Return a clause as words; "" if there is nothing in it to say.

    :raises SpeechRefused: it holds words of a script that the voice does not speak.
    """
    text = _clean(text)
    _refuse_scripts(text)
    try:
        text = notations(text)
        for rule in rules.RULES:
            text = rule(text)
    except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
        # A rule that fails costs this text, not the robot's voice.
        raise SpeechRefused(
            f"{text[:60]!r} cannot be put into words ({type(error).__name__}: {error}); word it "
            "otherwise"
        ) from error
    return _tidy(text)


def _clean(text: str) -> str:
    """Bring the many ways to write the same sign to one, and drop what is no text."""
    text = _ENTITY.sub(lambda m: html.unescape(m.group()), _TERMINAL.sub("", text))
    text = _GROUPED.sub("", text)
    # Before NFKC, which makes digits of them.
    for sign, words in FRACTIONS.items():
        text = re.sub(rf"(\d)\s?{sign}", rf"\1 and {words} ", text).replace(sign, f" {words} ")
    text = text.replace("\u00b2", "^2").replace("\u00b3", "^3").translate(_QUOTES)
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    kept = []
    for char in text:
        kind = unicodedata.category(char)
        if kind in _NO_TEXT and char not in SIGNS and char != "^":
            # Emoji and what joins them; accents that stand alone, without a space: they sit in words.
            kept.append(" " if kind == "So" else "")
        elif kind[0] in "CZ":
            kept.append(" ")
        else:
            kept.append(char)
    return "".join(kept)


def _refuse_scripts(text: str) -> None:
    for match in _LETTER.finditer(text):
        char = match.group()
        if char.isascii() or char.lower() in GREEK:
            continue
        name = unicodedata.name(char, "UNKNOWN")
        script = name.partition(" ")[0]
        if script not in _NOT_REFUSED:
            word = next(w for w in text.split() if char in w)
            raise SpeechRefused(
                f"{word[:30]!r} is written in {script.title()} letters and this voice speaks "
                "English: write it in Latin letters, or choose a voice of that language"
            )


def _tidy(text: str) -> str:
    """Keep letters, apostrophes inside words and one mark at a time."""
    text = re.sub(r"[^\w\s',;:.!?-]|_", " ", text)
    text = re.sub(r"(?<!\w)'+|'+(?!\w)", " ", text)
    text = re.sub(r"(?<=\w)-+(?=\w)", " ", text).replace("-", " ")
    # The strongest of several marks stays, the last of equals.
    text = re.sub(r"[,;:.!?](?:\s*[,;:.!?])+", _strongest, text)
    text = re.sub(r"\s*([,;:.!?])\s*", r"\1 ", text)
    text = " ".join(text.split()).lstrip(",;:.!? ")
    return text if any(char.isalnum() for char in text) else ""


def _strongest(match: re.Match[str]) -> str:
    marks = match.group()
    return next(mark for mark in "?!.:;," if mark in marks)
