# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What all voices share: text into clauses, one utterance at a time, and how far it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator

import numpy as np

from omni_ros.speech.clauses import Clause, Clauses
from omni_ros.speech.voice import SpeechChunk, SpeechError, SpeechRefused

#: Longer than anybody listens to; half a day of speech.
MAX_CHARACTERS = 400_000


class Script:
    """The text of one utterance, clause by clause, in words that can be spoken.

    A text that is given whole is read through at once, so that it is refused before anything is
    said.

    :param text: all of it, or pieces as they come; "" for nothing new yet.
    :param normalise: makes words of a clause, "" if there is nothing in it to say.
    :raises SpeechRefused: a whole text that cannot be said.
    """

    def __init__(self, text: str | Iterable[str], normalise: Callable[[str], str]) -> None:
        self._normalise = normalise
        self._clauses = Clauses()
        #: Whether no further clause follows the one that was given last.
        self.over = False
        self._said = False
        self._pieces: Iterable[str] | None = None
        self._whole: list[tuple[Clause, str]] = []
        if isinstance(text, str):
            _check_length(len(text))
            found = [*self._clauses.feed(text), *self._clauses.finish()]
            self._whole = [(c, words) for c in found if (words := normalise(c.text))]
            if not self._whole:
                raise nothing(text)
        else:
            self._pieces = text

    @property
    def characters(self) -> int:
        """All characters that were given so far."""
        return self._clauses.characters

    def clauses(self) -> Iterator[tuple[Clause, str] | tuple[None, str]]:
        """Yield clauses with their words as text comes; (None, "") where none is there yet.

        :raises SpeechRefused: a clause cannot be said, or nothing could.
        """
        for index, entry in enumerate(self._whole):
            self.over = index + 1 == len(self._whole)
            yield entry
        if self._pieces is None:
            return
        seen = ""
        for piece in self._pieces:
            if not isinstance(piece, str):
                raise TypeError(f"a piece of text is {piece!r:.60}: expected a str")
            _check_length(self.characters + len(piece))
            seen = seen or piece.strip()[:40]
            yield from self._spoken(self._clauses.feed(piece) if piece else self._clauses.pause())
            # Also where nothing is whole yet: whoever waits may have given up.
            yield None, ""
        yield from self._spoken(self._clauses.finish())
        self.over = True
        if not self._said:
            raise nothing(seen)

    def _spoken(self, clauses: list[Clause]) -> Iterator[tuple[Clause, str]]:
        for clause in clauses:
            words = self._normalise(clause.text)
            if words:
                self._said = True
                yield clause, words


def nothing(text: str) -> SpeechRefused:
    """Return the refusal of a text without words."""
    shown = f"{text.strip()[:40]!r} has" if text.strip() else "the text is empty: it has"
    return SpeechRefused(f"{shown} nothing in it that can be spoken; give words or numbers")


def _check_length(characters: int) -> None:
    if characters > MAX_CHARACTERS:
        raise SpeechRefused(
            f"the text has {characters} characters; up to {MAX_CHARACTERS} are said in one go: "
            "give it in parts"
        )


class Spoken:
    """Counts what was said and makes chunks of it."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._samples = self._characters = 0
        self._speaking = ""
        #: Whether the last chunk was made.
        self.ended = False

    def chunk(
        self, samples: np.ndarray, clause: Clause, share: float, timings: dict[str, float],
        end: bool,
    ) -> SpeechChunk:
        """Return a chunk.

        :param share: how much of the clause is said after it, 0 to 1.
        :param end: whether it is the clause's last.
        """
        self.ended = end and self._script.over
        reached = clause.start + round((clause.end - clause.start) * share)
        if self.ended:
            reached = self._script.characters
        self._characters = max(self._characters, reached)
        self._speaking = clause.text
        first, self._samples = self._samples, self._samples + len(samples)
        return SpeechChunk(
            samples, first, self._characters, clause.text, dict(timings), self.ended
        )

    def rest(self) -> SpeechChunk:
        """Return an empty last chunk: the text ended after all of it was said."""
        self.ended = True
        return SpeechChunk(
            np.zeros(0, np.float32), self._samples, self._script.characters, self._speaking, {},
            True,
        )


class Utterances:
    """Runs the utterances of a voice: one at a time, given up from any thread.

    :param name: of the voice, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._current: _Utterance | None = None
        self._closed = False

    def begin(
        self, make: Callable[[Callable[[], bool]], Generator[SpeechChunk | None, None, None]]
    ) -> Iterator[SpeechChunk]:
        """Return the chunks of an utterance.

        :param make: makes its generator, which yields None wherever it may be given up, of a
            function that says whether it is still wanted.
        :raises SpeechError: the voice is closed, or works on another utterance at this moment. One
            that was left half said is given up.
        """
        with self._lock:
            if self._closed:
                raise SpeechError(f"the voice {self._name} is closed; open it again")
            before = self._current
            if before is not None and not before.give_up():
                raise SpeechError(
                    f"the voice {self._name} is saying something else; abort that and wait for its "
                    "end, or open a second voice"
                )
            self._current = _Utterance(make)
            return self._current

    def abort(self) -> None:
        """End the running utterance; from any thread."""
        current = self._current
        if current is not None:
            current.wanted = False

    def close(self) -> None:
        """End it and begin no other; returns when nothing runs any more."""
        with self._lock:
            self._closed = True
            current, self._current = self._current, None
        if current is not None:
            current.wanted = False
            with current.lock:
                current.generator.close()


class _Utterance(Iterator[SpeechChunk]):
    def __init__(
        self, make: Callable[[Callable[[], bool]], Generator[SpeechChunk | None, None, None]]
    ) -> None:
        self.wanted = True
        self.lock = threading.Lock()
        self.generator = make(lambda: self.wanted)

    def __next__(self) -> SpeechChunk:
        with self.lock:
            while self.wanted:
                chunk = next(self.generator)
                if chunk is not None:
                    if chunk.last:
                        self.generator.close()
                    # An abort while it was made: it is not to be heard any more.
                    if self.wanted:
                        return chunk
            self.generator.close()
            raise StopIteration

    def close(self) -> None:
        """Give the utterance up."""
        self.wanted = False
        with self.lock:
            self.generator.close()

    def give_up(self) -> bool:
        """Give it up unless a thread works on it right now; return whether it is over."""
        if not self.lock.acquire(blocking=False):
            return False
        try:
            self.wanted = False
            self.generator.close()
            return True
        finally:
            self.lock.release()
