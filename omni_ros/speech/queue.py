# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is said next: priorities, utterances that are continued, and what is refused.

An utterance is what is spoken without a seam; each goal is a part of one. Mostly it is the only one.
Everything here is for callers that hold one lock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from omni_ros.speech.queue_text import TextFeed

#: Characters of one goal.
MOST_CHARACTERS = 20_000
#: Utterances that may wait.
MOST_WAITING = 16
#: Characters of an utterance's name, which is in every chunk of it.
MOST_NAME = 256


class Priority(IntEnum):
    """As in Speak.action."""

    QUEUE = 0
    REPLACE = 1
    ONLY_IF_IDLE = 2


class Result(IntEnum):
    """As in Speak.action."""

    SPOKEN = 0
    ABORTED = 1
    REFUSED = 2


class Refused(ValueError):
    """What is asked for is not done; the message says why, and what to change."""


@dataclass(frozen=True)
class Request:
    """One goal.

    :param key: whatever tells it from others.
    :param accepted_ns: monotonic clock.
    """

    key: Any
    text: str
    voice: str = ""
    rate: float = 1.0
    volume: float = 1.0
    priority: int = Priority.QUEUE
    more: bool = False
    utterance: str = ""
    accepted_ns: int = 0


@dataclass
class Part:
    """What one goal gave to an utterance: the characters from begin to end."""

    request: Request
    begin: int
    end: int
    finished: bool = False

    @property
    def speakable_end(self) -> int:
        """Where its last character is that is not a space."""
        return self.begin + len(self.request.text.rstrip())

    def share(self, characters: int) -> int:
        """Return how many of the first characters of the utterance are this part's."""
        return min(max(characters - self.begin, 0), self.end - self.begin)


@dataclass
class Job:
    """An utterance: its text as it comes, and how it ended."""

    name: str
    voice: str
    rate: float
    volume: float
    feed: TextFeed
    parts: list[Part] = field(default_factory=list)
    begun_ns: int = 0
    #: How it ended, with why; None while it has not.
    outcome: tuple[Result, str] | None = None

    @property
    def open(self) -> bool:
        """Whether more text may come."""
        return not self.feed.closed

    def add(self, request: Request) -> None:
        begin = self.feed.length
        self.feed.put(request.text, last=not request.more)
        self.parts.append(Part(request, begin, self.feed.length))

    def end(self, result: Result, text: str) -> bool:
        """Say how it ended; the first to say so is believed. Whether that was this call."""
        if self.outcome is not None:
            return False
        self.outcome = result, text
        self.feed.close()
        return True


class SpeechQueue:
    """The utterance being spoken and those that wait."""

    def __init__(self, voices: Sequence[str], *, continue_s: float = 2.0) -> None:
        """
        :param voices: names that a goal may ask for; the first is meant by "".
        :param continue_s: how long a goal that said more would follow is waited for.
        """
        self.voices = tuple(voices)
        self.continue_s = continue_s
        self.current: Job | None = None
        self.waiting: deque[Job] = deque()
        self._made_up = 0

    @property
    def idle(self) -> bool:
        return self.current is None and not self.waiting

    def jobs(self) -> Iterator[Job]:
        """Yield the current one and those that wait."""
        if self.current is not None:
            yield self.current
        yield from self.waiting

    def offer(self, request: Request) -> tuple[Job, list[Job]]:
        """Take a goal.

        :return: the utterance it belongs to, and those that it replaces: the caller ends them.
        :raises Refused: it is not taken.
        """
        self._check(request)
        for job in self.jobs():
            if request.utterance and job.name == request.utterance and job.outcome is None:
                if not job.open:
                    if request.priority == Priority.REPLACE:
                        break  # the next answer under the same name
                    raise Refused(f"the utterance {job.name!r} has its last part already; set "
                                  "more_text_follows on all parts but the last, name another, or set "
                                  "priority to PRIORITY_REPLACE")
                job.add(request)
                return job, []
        if not request.text.strip() and not request.more:
            raise Refused("there is nothing to say: the text is empty")
        replaced: list[Job] = []
        if request.priority == Priority.REPLACE:
            replaced = list(self.jobs())
            self.waiting.clear()
        elif request.priority == Priority.ONLY_IF_IDLE and not self.idle:
            raise Refused("something is being said, and the goal asks to be said only if not")
        elif len(self.waiting) >= MOST_WAITING:
            raise Refused(f"{len(self.waiting)} utterances wait already; cancel some, or set "
                          "priority to PRIORITY_REPLACE")
        job = Job(request.utterance or self._name(), request.voice or self.voices[0], request.rate,
                  request.volume, TextFeed(self.continue_s))
        job.add(request)
        self.waiting.append(job)
        return job, replaced

    def _name(self) -> str:
        taken = {job.name for job in self.jobs()}
        while True:
            self._made_up += 1
            if (name := f"utterance_{self._made_up}") not in taken:
                return name

    def _check(self, request: Request) -> None:
        if request.priority not in tuple(Priority):
            raise Refused(f"priority is {request.priority}; expected 0 (queue), 1 (replace) or 2 "
                          "(only if idle)")
        if request.voice and request.voice not in self.voices:
            raise Refused(f"voice is {request.voice[:60]!r}; loaded are {', '.join(self.voices)} (the "
                          "node's parameter 'voices' says which)")
        if len(request.utterance) > MOST_NAME:
            raise Refused(f"utterance_id {request.utterance[:20]!r}... has {len(request.utterance)} "
                          f"characters; expected at most {MOST_NAME}: shorten it")
        if not math.isfinite(request.volume) or not 0.0 <= request.volume <= 1.0:
            raise Refused(f"volume is {request.volume:g}; expected 0 (silent) to 1 (full)")
        if not math.isfinite(request.rate) or request.rate <= 0.0:
            raise Refused(f"rate is {request.rate:g}; expected about 0.5 (slow) to 2 (fast)")
        if len(request.text) > MOST_CHARACTERS:
            raise Refused(f"the text has {len(request.text)} characters; expected at most "
                          f"{MOST_CHARACTERS}: send it in parts, with more_text_follows")

    def next(self) -> Job | None:
        """Make the one that waits longest the current one and return it."""
        self.current = self.waiting.popleft() if self.waiting else None
        return self.current

    def drop(self, job: Job) -> None:
        """Forget one that ended before its turn, or that has been said."""
        if job is self.current:
            self.current = None
        elif job in self.waiting:
            self.waiting.remove(job)
