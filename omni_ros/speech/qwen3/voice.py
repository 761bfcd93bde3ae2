# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Qwen3-TTS as a voice of the speech pipeline: see omni_ros.speech.voice.Voice."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from omni_ros.speech.schedule import PlayedFrom, Schedule
from omni_ros.speech.voice import (
    SpeechChunk,
    SpeechError,
    SpeechRefused,
    Utterance,
    check_utterance,
)

from .chunks import Chunks
from .feed import TextFeed
from .frames import FrameMaker, Span
from .options import QwenOptions, parse_options
from .pace import FRAMES_PER_TOKEN, Pace
from .parts import Parts, open_parts
from .wire import from_wire

_log = logging.getLogger(__name__)

#: Positions of a context that are not left to the text, and the frames that a token is given.
_SPAN_RESERVE, _SPAN_FRAMES_PER_TOKEN = 24, 6
#: Until frames were counted: characters of English that a frame says.
_CHARACTERS_PER_FRAME = 1.2


class QwenVoice:
    """A loaded Qwen3-TTS bundle. One utterance at a time; `abort` from any thread."""

    def __init__(self, bundle: Path, threads: int = 0, cpus: Sequence[int] | None = None,
                 **options: object) -> None:
        """:param options: see options.QwenOptions.

        :raises BundleError, TalkerError: a part is missing or damaged.
        :raises ValueError: an option that there is not.
        """
        self.options: QwenOptions = parse_options(options)
        parts: Parts = open_parts(Path(bundle), self.options, threads, cpus)
        self._parts = parts
        self.name, self.sample_rate = parts.name, parts.sample_rate
        self.frame_samples = parts.vocoder.frame_samples
        self.languages, self.speakers = parts.languages, parts.speakers
        self.rates = (1.0, 1.0)
        self.pace = Pace(self.frame_samples / self.sample_rate)
        # An abort is seen between two frames, so a chunk may take as long as it lasts.
        self.schedule = Schedule(sorted(parts.vocoder_sizes), self.pace.frame_s, most_s=math.inf)
        self._maker = FrameMaker(
            parts.talker, parts.predictor, parts.prompts, parts.codec, parts.rules)  # fmt: skip
        self._stop = threading.Event()
        self._busy = threading.Lock()
        self._closed = False
        self._warm_up()

    # -- speaking ---------------------------------------------------------------------------------

    def start(
        self,
        text: str | Iterable[str],
        utterance: Utterance = Utterance(),
        slack: Callable[[], float] | None = None,
    ) -> Iterator[SpeechChunk]:
        """As Voice.start."""
        if self._closed:
            raise SpeechError(f"the voice {self.name} is closed; open it again")
        utterance = check_utterance(self, utterance)
        if isinstance(text, str):
            _check_speakable(text)
        if not self._busy.acquire(blocking=False):
            raise SpeechError(f"the voice {self.name} is saying another utterance; abort it first")
        self._stop.clear()
        return _Held(self._speak(text, utterance, slack), self._busy)

    def _speak(
        self, text: str | Iterable[str], utterance: Utterance, slack: Callable[[], float] | None
    ) -> Iterator[SpeechChunk]:
        if verdict := self.pace.verdict():
            _log.warning("%s: %s", self.name, verdict)
        feed = TextFeed(text, self._parts.encode, span_tokens=self._span_tokens())
        say = _Saying(self, feed, slack)
        part = 0
        while not self._stop.is_set() and feed.begin_span():
            yield from say.span(utterance, part)
            part += 1
        if self._stop.is_set():
            return
        if feed.failure is not None:
            raise feed.failure
        if not say.finished:
            if not say.samples:
                _check_speakable(feed.text)
            yield say.chunk(np.empty(0, np.float32), {}, last=True)

    def voice_codes(self, codes: np.ndarray) -> Iterator[np.ndarray]:
        """Voice codec frames that were made elsewhere; yields float32 samples as they are made.

        :param codes: integers [frames, groups], or a row as vLLM-Omni sends it, codebook-major.
        :raises CodesError: they are none.
        """
        vocoder = self._parts.vocoder
        if codes.ndim == 1:
            codes = from_wire(codes, self._parts.groups)
        with self._busy:
            self._stop.clear()
            vocoder.start()
            for part in vocoder.steps(codes):
                if self._stop.is_set():
                    return
                yield part

    def abort(self) -> None:
        """As Voice.abort."""
        self._stop.set()

    def close(self) -> None:
        """As Voice.close."""
        self.abort()
        if self._closed:
            return
        # Whoever iterates sees the stop within a frame.
        with self._busy:
            self._closed = True
            self._parts.close()

    # -- the machine ------------------------------------------------------------------------------

    def _span_tokens(self) -> int:
        room = self._parts.talker.limit - _SPAN_RESERVE
        if self.options.text == "whole":
            return max(1, room // (_SPAN_FRAMES_PER_TOKEN + 1))
        return max(1, room // _SPAN_FRAMES_PER_TOKEN)

    def _warm_up(self) -> None:
        """Touch every program once, then measure what a frame costs before anyone waits for it."""
        for measured in (False, True):
            feed = TextFeed("Hello.", self._parts.encode, span_tokens=100)
            feed.begin_span()
            span = Span(0)
            for frame in self._maker.say(feed, span, language=self.languages[0],
                                         speaker=self.speakers[0] if self.speakers else "",
                                         greedy=True):
                self._stop.clear()
                if measured:
                    self._count(frame.seconds)
                if span.frames == 4:
                    break
            self._parts.vocoder.start()
            for size in self._parts.vocoder_sizes:
                before = time.perf_counter()
                self._parts.vocoder.decode(np.ones((size, self._parts.groups), np.int64))
                if measured:
                    spent = time.perf_counter() - before
                    self.pace.add("vocoder", spent, size)
                    self.schedule.took(size, spent + size * (self.pace.cost - spent / size))
        if verdict := self.pace.verdict():
            _log.warning("%s: %s", self.name, verdict)

    def _count(self, seconds: dict[str, float]) -> None:
        for stage in ("talker", "predictor"):
            if stage in seconds:
                self.pace.add(stage, seconds[stage])


class _Saying:
    """One utterance on its way: what has been made, and where in the text it is."""

    def __init__(self, voice: QwenVoice, feed: TextFeed, slack: Callable[[], float] | None) -> None:
        self._voice, self._feed = voice, feed
        self._parts = voice._parts
        self._played = PlayedFrom()
        self._chunks = Chunks(voice.options, voice.pace, voice.schedule, slack or self._played)
        self.samples = 0
        self.text_end = 0
        self.finished = False
        self._speaking = ""

    def span(self, utterance: Utterance, part: int) -> Iterator[SpeechChunk]:
        """Say the span that the feed has begun."""
        voice, options = self._voice, self._voice.options
        self._span = span = Span(self.text_end)
        self._chunks.begin_span()
        self._parts.vocoder.start()
        frames: list[np.ndarray] = []
        seconds: dict[str, float] = {}
        maker = voice._maker.say(
            self._feed, span, language=utterance.language, speaker=utterance.speaker,
            seed=utterance.seed, part=part, greedy=utterance.deterministic,
            whole=options.text == "whole")  # fmt: skip
        for frame in maker:
            if voice._stop.is_set():
                return
            voice._count(frame.seconds)
            frames.append(frame.codes)
            for stage, spent in frame.seconds.items():
                seconds[stage] = seconds.get(stage, 0.0) + spent
            if self._chunks.ready(len(frames), round(span.tokens * FRAMES_PER_TOKEN)):
                yield from self._voiced(frames, seconds, last=False)
                frames, seconds = [], {}
        if voice._stop.is_set():
            return
        span.text_ended = True
        last = self._feed.all_text and self._feed.failure is None
        while frames:
            size = min(len(frames), self._chunks.most)
            yield from self._voiced(frames[:size], seconds, last=last and size == len(frames))
            del frames[:size]
            seconds = {}
        self.text_end = span.text_end

    def _voiced(
        self, frames: list[np.ndarray], seconds: dict[str, float], *, last: bool
    ) -> Iterator[SpeechChunk]:
        """Voice a chunk; nothing comes of it if the voice was stopped meanwhile."""
        made = []
        before = time.perf_counter()
        for samples in self._parts.vocoder.steps(np.stack(frames)):
            if self._voice._stop.is_set():
                return
            made.append(samples)
        spent = time.perf_counter() - before
        self._voice.pace.add("vocoder", spent, len(frames))
        seconds = {**seconds, "vocoder": spent}
        self._chunks.took(len(frames), sum(seconds.values()) - seconds.get("text", 0.0))
        yield self.chunk(np.concatenate(made), seconds, last=last)

    def chunk(self, samples: np.ndarray, seconds: dict[str, float], *, last: bool) -> SpeechChunk:
        """Return a chunk behind those before it."""
        first = self.samples
        self.samples += len(samples)
        self._played.made(len(samples) / self._voice.sample_rate)
        self.text_end = self._reached(last)
        self.finished = last
        return SpeechChunk(samples, first, self.text_end, self._clause(), seconds, last)

    def _reached(self, last: bool) -> int:
        if last:
            return len(self._feed.text)
        span = self._span
        guess = span.start + round(span.frames * _CHARACTERS_PER_FRAME)
        # The talker does not say where it is: its usual speed tells, and what it was given.
        return max(self.text_end, min(guess, span.text_end))

    def _clause(self) -> str:
        return self._feed.clause_at(max(self.text_end - 1, 0))


class _Held:
    """An iterator that gives its lock back when it ends, fails, is closed or is forgotten."""

    def __init__(self, inner: Iterator[SpeechChunk], lock: threading.Lock) -> None:
        self._inner, self._lock = inner, lock

    def __iter__(self) -> _Held:
        return self

    def __next__(self) -> SpeechChunk:
        try:
            return next(self._inner)
        except BaseException:
            self._release()
            raise

    def close(self) -> None:
        """End it here."""
        self._inner.close()
        self._release()

    def __del__(self) -> None:
        self.close()

    def _release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def _check_speakable(text: str) -> None:
    if not any(character.isalnum() for character in text):
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise SpeechRefused(
            f"the text {shown!r} has no letter and no digit; expected something that can be said"
        )
