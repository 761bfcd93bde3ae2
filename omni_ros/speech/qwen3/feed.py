# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Text tokens of a text that is still coming, one at a time, each final when it is given."""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

#: From a text to its tokens: id, and where in the text it ends.
Encode = Callable[[str], "list[tuple[int, int]]"]


@dataclass(frozen=True)
class TextToken:
    """:param id: of the tokenizer. :param end: characters of the whole text up to its end."""

    id: int
    end: int


def settled(text: str) -> int:
    """Return how much of a text that may go on has tokens that what follows cannot change.

    The tokenizer first splits a text into words; a word that has ended stays as it is. What ends a
    word is anything that is no letter or digit; that itself may belong to what follows.
    """
    for index in range(len(text) - 1, 0, -1):
        here = text[index]
        if text[index - 1].isalnum() and not here.isalnum() and not unicodedata.combining(here):
            return index
    return 0


class TextFeed:
    """Asks for pieces as tokens run out, and cuts the text into spans that are said on their own.

    A span is what one context of the talker says. It ends where the text ends; at the end of a
    sentence if no more text has come yet, so that what is whole is said before more is waited for
    (at that of a clause if the text has paused, which empty pieces tell); and, before the context is full, at the last clause that fits.
    """

    def __init__(
        self,
        text: str | Iterable[str],
        encode: Encode,
        *,
        span_tokens: int,
        check: Callable[[str], None] | None = None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """:param span_tokens: the most that a span may have. :param check: raises for a piece that
        cannot be said; called with all text so far. :param wanted: asked while text is waited for;
        the text ends where it says no."""
        self._pieces: Iterator[str] | None = None if isinstance(text, str) else iter(text)
        self._encode, self._most, self._check = encode, span_tokens, check
        self._wanted, self._paused = wanted, False
        self.text = text if isinstance(text, str) else ""
        self._settled = 0  # characters that have become tokens
        self._spoken = 0  # characters whose tokens were given
        self._ready: deque[TextToken] = deque()
        self._given = 0  # tokens of this span
        self._ended = False
        self.failure: Exception | None = None
        if self._pieces is None:
            self._take(len(self.text))

    @property
    def all_text(self) -> bool:
        """Whether the text has ended and all its tokens were given."""
        return self._pieces is None and not self._ready

    def begin_span(self) -> bool:
        """Start the next span; return whether there is one. Waits for its first token."""
        self._given, self._ended = 0, False
        # A span opens with a word, not with the space before it.
        self._ready.clear()
        end, self._settled = self._settled, self._spoken
        self._take(end)
        while not self._ready and self._pull():
            pass
        return bool(self._ready)

    def next(self) -> TextToken | None:
        """Return the span's next token, None at its end. May wait for text."""
        if self._ended:
            return None
        while not self._ready:
            if self._given and self._whole():
                self._take(len(self.text))  # its last mark was held back: it might have gone on
                if not self._ready:
                    self._ended = True
                    return None
            elif not self._pull():
                self._ended = True
                return None
        token = self._ready.popleft()
        self._given, self._spoken = self._given + 1, token.end
        if self._must_break(token):
            self._ended = True
        return token

    def clause_at(self, index: int) -> str:
        """Return the clause that a character of the text so far belongs to."""
        start = end = min(index, max(len(self.text) - 1, 0))
        while start > 0 and not self._ends_clause(start - 1):
            start -= 1
        while end < len(self.text) and not self._ends_clause(end):
            end += 1
        return self.text[start : end + 1].strip()

    def _ends_clause(self, index: int) -> bool:
        here, after = self.text[index], self.text[index + 1 : index + 2]
        return here in _CLAUSE_ENDS and (not after or not after.isalnum() or ord(here) > 127)

    def _whole(self) -> bool:
        """Whether what has come can be said on its own: a sentence, or, while nothing more comes, a
        clause."""
        here = self.text.rstrip()
        clause = here[-1:] in _CLAUSE_ENDS and here[-1:] != "."
        return sentence_ended(here) or (self._paused and clause)

    def _pull(self) -> bool:
        if self._pieces is None or not self._wanted():
            return False
        try:
            piece = next(self._pieces)
            if not isinstance(piece, str):
                raise TypeError(f"a piece of text is {piece!r:.60}: expected a str")
            if self._check is not None and piece:
                self._check(self.text + piece)
        except StopIteration:
            piece = None
        except Exception as error:  # what came before it is said first
            self.failure, piece = error, None
        if piece is None:
            self._pieces = None
            self._take(len(self.text))
            return bool(self._ready)
        self.text += piece
        self._paused = not piece
        self._take(self._settled + settled(self.text[self._settled :]))
        return True

    def _take(self, end: int) -> None:
        start, self._settled = self._settled, end
        if not self._given and not self._ready:
            start += len(self.text[start:end]) - len(self.text[start:end].lstrip())
        part = self.text[start:end]
        if part.strip():
            self._ready.extend(TextToken(id, start + to) for id, to in self._encode(part))

    def _must_break(self, token: TextToken) -> bool:
        """Whether the span has to end behind this token for its context to suffice."""
        left = self._most - self._given
        if left <= 0:
            return True
        here = self.text[: token.end].rstrip()
        # The nearer the limit, the smaller the pause that is enough.
        return (left < self._most // 2 and sentence_ended(here)) or (
            left < self._most // 4 and here[-1:] in _CLAUSE_ENDS
        )


_SENTENCE_ENDS = frozenset("!?…。！？")
_CLAUSE_ENDS = frozenset(",;:.!?…、，；：。！？—–")
_CLOSERS = "\"'”’»)]}」』"
#: A full stop behind these, a digit or a single letter may stand within a sentence.
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st no nr vs etc fig approx jr sr inc ltd co dept est e.g i.e z.b bzw".split()
)


def sentence_ended(text: str) -> bool:
    """Return whether a text ends with the end of a sentence, whatever may follow it."""
    text = text.rstrip().rstrip(_CLOSERS)
    if text[-1:] != ".":
        return text[-1:] in _SENTENCE_ENDS
    words = text[:-1].split()
    last = words[-1].strip(_CLOSERS + "([{").lower() if words else ""
    return len(last) > 1 and not last[-1].isdigit() and last not in _ABBREVIATIONS
