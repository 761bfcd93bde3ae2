# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Text as it comes, cut into what is said in one go: sentences, and clauses of long ones.

Where the cuts are depends on the text alone, not on the pieces that it comes in: a cut is made as
soon as what follows cannot change it. A sentence is cut inside only if it is long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: From so many characters on, a sentence is cut at its next comma.
LONG = 140
#: So many characters are cut at a space, or, if there is none, anywhere.
LONGEST = 260
#: Seconds of silence behind a sentence, a paragraph, a clause of a sentence.
SENTENCE_S, PARAGRAPH_S, CLAUSE_S = 0.25, 0.45, 0.08

_CLOSERS = "[\"'\u201d\u2019)\\]}*_]*"
_END = re.compile(rf"[.!?\u2026\u3002\uff01\uff1f]+{_CLOSERS}$")
_COMMA = re.compile(rf"(?:[,;:\u2014\u2013]+{_CLOSERS}|\s-{{1,3}})$")
_POINT = re.compile(r"\d\.$")
_SPACE = re.compile(r"\s+")
_ITEM = re.compile(r"(?:[-*#\u2022]|\d{1,3}[.)])\s?")
#: Characters behind a cut that are looked at.
_AHEAD = 5
#: Words that end in a full stop and seldom end a sentence. Lower case, without the last full stop.
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof sr jr st gen col lt sgt capt rev hon vs etc e.g i.e eg ie cf al approx ca "
    "no nos fig figs eq eqs sec ch vol pp ed eds max min temp dept est inc ltd co corp ave blvd rd "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun".split()
)
#: Of those, what may well end one: it does if a capital letter follows.
_EITHER = frozenset("etc inc ltd co corp jr sr ave blvd rd max min sec dec mar".split())


@dataclass(frozen=True)
class Clause:
    """What is said in one go.

    :param text: as it was given. :param start, end: where it stands in all of the text so far; the
        characters up to `end` are done with when it was said. :param pause_s: the silence behind.
    """

    text: str
    start: int
    end: int
    pause_s: float


class Clauses:
    """Takes pieces of text and gives clauses."""

    def __init__(self) -> None:
        self._rest = ""
        self._start = 0

    @property
    def characters(self) -> int:
        """All characters that were given so far."""
        return self._start + len(self._rest)

    def feed(self, piece: str) -> list[Clause]:
        """Take a piece; return the clauses that are whole now."""
        self._rest += piece
        return self._take(final=False)

    def pause(self) -> list[Clause]:
        """Return what seems whole: no more text has come for a while.

        Otherwise a sentence would wait for the beginning of the next one.
        """
        found = self._take(final=False)
        body = self._rest.strip()
        # "3." may be going to be 3.5, and three and five are other numbers.
        if _END.search(body) and _ends_sentence(body, "A") and not _POINT.search(body):
            found += self._take(final=True)
        return found

    def finish(self) -> list[Clause]:
        """Return what is left: there is no more text."""
        return self._take(final=True)

    def _take(self, *, final: bool) -> list[Clause]:
        found = []
        while True:
            body = len(self._rest) - len(self._rest.lstrip())
            if body:
                self._rest, self._start = self._rest[body:], self._start + body
            cut = _cut(self._rest, final=final) if self._rest else None
            if cut is None:
                return found
            end, pause_s = cut
            text = self._rest[:end]
            found.append(Clause(text, self._start, self._start + end, pause_s))
            self._rest, self._start = self._rest[end:], self._start + end


def _cut(rest: str, *, final: bool) -> tuple[int, float] | None:
    """Return where the first clause ends and the pause behind it.

    None if that is not known before more text is there. `rest` begins with no white space.
    """
    last = 0
    for run in _SPACE.finditer(rest):
        end = run.start()
        if end > LONGEST:
            break
        following = rest[run.end():run.end() + _AHEAD]
        pause_s = _pause(rest[:end], run.group(), following)
        if pause_s is not None:
            # What follows may yet turn out to make it no end; a cut is not taken back.
            return (end, pause_s) if final or len(following) == _AHEAD else None
        if not final and len(following) < _AHEAD and _may_end(rest[:end], run.group()):
            return None
        last = end
    if len(rest) > LONGEST:
        return last or LONGEST, 0.0
    return (len(rest), SENTENCE_S if _END.search(rest) else 0.0) if final else None


def _may_end(before: str, space: str) -> bool:
    return "\n" in space or _END.search(before) is not None


def _pause(before: str, space: str, following: str) -> float | None:
    """Return the pause if a clause ends here, else None."""
    lines = space.count("\n")
    if lines > 1 or (lines and _ITEM.match(following)):
        return PARAGRAPH_S
    if _END.search(before) and _ends_sentence(before, following):
        return SENTENCE_S
    if len(before) > LONG and _COMMA.search(before):
        return CLAUSE_S
    return None


def _ends_sentence(before: str, following: str) -> bool:
    """Whether the marks that `before` ends in end a sentence, by what they are and what follows."""
    marks = _END.search(before)
    assert marks is not None
    following = following.lstrip("\"'\u201c\u2018([{*_")
    lower = following[:1].islower()
    if marks.group()[0] != "." or marks.group().startswith(".."):
        return marks.group()[0] not in ".\u2026" or not lower
    words = before[: marks.start()].split()
    word = words[-1].lstrip("(\"'[").lower() if words else ""
    if word.isdigit() and len(words) == 1:
        return False  # "1. Do this"
    if word in _EITHER or re.fullmatch(r"(?:[a-z]\.)+[a-z]", word):
        return following[:1].isupper() and word not in ("e.g", "i.e")
    if len(word) == 1 and word.isalpha() and word != "i":
        return lower  # an initial
    if word == "no":
        return not following[:1].isdigit()
    return word not in ABBREVIATIONS
