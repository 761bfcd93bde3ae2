# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Qwen3-TTS as a voice of the speech pipeline: see omni_ros.speech.voice.Voice."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from omni_ros.speech.pipeline import MAX_CHARACTERS, Utterances, nothing
from omni_ros.speech.schedule import PlayedFrom, Schedule
from omni_ros.speech.voice import SpeechChunk, SpeechRefused, Utterance, check_utterance

from .chunks import ChunkSizes
from .feed import TextFeed
from .frames import FrameMaker, Span
from .options import QwenOptions, parse_options
from .pace import FRAMES_PER_TOKEN, Pace
from .parts import Parts, open_parts
from .wire import from_wire

#: Of an utterance on its way: chunks, and None wherever it may be given up.
Chunks = Generator["SpeechChunk | None", None, None]

_log = logging.getLogger(__name__)

#: Frames that a token of a span is given room for: slow speech. And for the silence behind it.
_SPAN_FRAMES_PER_TOKEN, _SPAN_REST = 6, 12
#: How many characters of English a frame says, about.
_CHARACTERS_PER_FRAME = 1.2
#: Stages that every frame goes through.
_OF_EACH_FRAME = ("talker", "predictor", "vocoder")
#: Frames that each stage is measured over when the voice is opened.
_WARM_UP_FRAMES = 4


class QwenVoice:
    """A loaded Qwen3-TTS bundle."""

    rates = (1.0, 1.0)

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
        #: what a frame costs here, by stage; see Pace.verdict
        self.pace = Pace(self.frame_samples / self.sample_rate)
        # An abort is seen between two frames, so a chunk may take as long as it lasts.
        self.schedule = Schedule(sorted(parts.vocoder_sizes), self.pace.frame_s, most_s=math.inf)
        self._maker = FrameMaker(
            parts.talker, parts.predictor, parts.prompts, parts.codec, parts.rules)  # fmt: skip
        self._utterances = Utterances(self.name)
        self._closed = False
        self._warm_up()

    @property
    def verdict(self) -> str:
        """What there is to say about this machine in numbers; "" if it keeps up."""
        return self.pace.verdict()

    def start(
        self,
        text: str | Iterable[str],
        utterance: Utterance = Utterance(),
        slack: Callable[[], float] | None = None,
    ) -> Iterator[SpeechChunk]:
        """As Voice.start. The samples of an utterance with the same seed are the same but for
        their last bits, in which the sizes of the chunks show."""
        # Names are written large on model cards and small in checkpoints.
        utterance = check_utterance(self, replace(
            utterance, language=utterance.language.lower(), speaker=utterance.speaker.lower()))
        if isinstance(text, str):
            _check_speakable(text)
        return self._utterances.begin(lambda wanted: self._speak(text, utterance, slack, wanted))

    def _speak(
        self,
        text: str | Iterable[str],
        utterance: Utterance,
        slack: Callable[[], float] | None,
        wanted: Callable[[], bool],
    ) -> Chunks:
        if verdict := self.verdict:
            _log.warning("%s: %s", self.name, verdict)
        feed = TextFeed(text, self._parts.encode, span_tokens=self._span_tokens(utterance),
                        check=_check_length, wanted=wanted)  # fmt: skip
        say = _Saying(self, feed, slack)
        part = 0
        while wanted() and feed.begin_span():
            yield from say.span(utterance, part)
            part += 1
        if not wanted():
            return
        if feed.failure is not None:
            raise feed.failure
        if not say.finished:
            if not say.samples:
                _check_speakable(feed.text)
            yield say.chunk(np.empty(0, np.float32), {}, last=True)

    def voice_codes(self, codes: np.ndarray) -> Iterator[SpeechChunk]:
        """Voice codec frames that were made elsewhere.

        :param codes: integers [frames, groups], or a row as vLLM-Omni sends it, codebook-major.
        :raises CodesError: they are none.
        """
        codes = np.asarray(codes)
        if codes.ndim != 2:
            codes = from_wire(codes, self._parts.groups)

        def speak(wanted: Callable[[], bool]) -> Chunks:
            vocoder, done, at = self._parts.vocoder, 0, 0
            sizes = ChunkSizes(self.options, self.pace, self.schedule, lambda: 0.0)
            vocoder.start()
            for size in sizes.cut(len(codes)):
                for samples in vocoder.steps(codes[at : at + size]):
                    end = done + len(samples)
                    last = end == len(codes) * self.frame_samples
                    yield SpeechChunk(samples, done, 0, "", {}, last) if len(samples) else None
                    done = end
                at += size

        return self._utterances.begin(speak)

    def abort(self) -> None:
        """As Voice.abort."""
        self._utterances.abort()

    def close(self) -> None:
        """As Voice.close."""
        self._utterances.close()
        if not self._closed:
            self._closed = True
            self._parts.close()

    def __enter__(self) -> QwenVoice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _span_tokens(self, utterance: Utterance) -> int:
        """Return the most text tokens whose speech has room in a context of the talker."""
        before = self._parts.prompts.head_length(utterance.language, utterance.speaker)
        room = self._parts.talker.limit - before - _SPAN_REST
        if self.options.text == "whole":
            return max(1, room // (_SPAN_FRAMES_PER_TOKEN + 1))
        return max(1, room // _SPAN_FRAMES_PER_TOKEN)

    def _warm_up(self) -> None:
        """Touch every program once, then measure what a frame costs before anyone waits for it."""
        parts = self._parts
        for measured in (False, True):
            feed = TextFeed("Hello.", parts.encode, span_tokens=100)
            feed.begin_span()
            made = self._maker.say(feed, Span(0), language=self.languages[0],
                                   speaker=self.speakers[0] if self.speakers else "",
                                   greedy=True)  # fmt: skip
            for _, frame in zip(range(_WARM_UP_FRAMES), made):
                if measured:
                    self._count(frame.seconds)
            made.close()
            parts.vocoder.start()
            codes = np.zeros((max(parts.vocoder_sizes), parts.groups), np.int64)
            spent = {}
            for size in parts.vocoder_sizes:
                before = time.perf_counter()
                parts.vocoder.decode(codes[:size])
                spent[size] = time.perf_counter() - before
        frame = self.pace.cost
        for size, seconds in spent.items():
            self.pace.add("vocoder", seconds, size)
            self.schedule.took(size, seconds + size * frame)
        if verdict := self.verdict:
            _log.warning("%s: %s", self.name, verdict)

    def _count(self, seconds: dict[str, float]) -> None:
        for stage in ("talker", "predictor"):
            if stage in seconds:
                self.pace.add(stage, seconds[stage])


class _Saying:
    """One utterance on its way: what has been made, and where in the text it is."""

    def __init__(self, voice: QwenVoice, feed: TextFeed, slack: Callable[[], float] | None) -> None:
        self._voice, self._feed, self._parts = voice, feed, voice._parts
        self._played = PlayedFrom()
        self._sizes = ChunkSizes(voice.options, voice.pace, voice.schedule, slack or self._played)
        self._span = Span(0)
        self.samples = self.text_end = 0
        self.finished = False

    def span(self, utterance: Utterance, part: int) -> Chunks:
        """Say the span that the feed has begun."""
        voice = self._voice
        self._span = span = Span(self.text_end)
        self._sizes.begin_span()
        self._parts.vocoder.start()
        frames: list[np.ndarray] = []
        seconds: dict[str, float] = {}
        maker = voice._maker.say(
            self._feed, span, language=utterance.language, speaker=utterance.speaker,
            seed=utterance.seed, part=part, greedy=utterance.deterministic,
            whole=voice.options.text == "whole")  # fmt: skip
        for frame in maker:
            yield None
            voice._count(frame.seconds)
            frames.append(frame.codes)
            for stage, spent in frame.seconds.items():
                seconds[stage] = seconds.get(stage, 0.0) + spent
            if self._sizes.ready(len(frames), round(span.tokens * FRAMES_PER_TOKEN)):
                yield from self._voiced(frames, seconds, last=False)
                frames, seconds = [], {}
        span.text_ended = True
        last = self._feed.all_text and self._feed.failure is None
        while frames:
            count = min(len(frames), self._sizes.most)
            yield from self._voiced(frames[:count], seconds, last=last and count == len(frames))
            del frames[:count]
            seconds = {}
        self.text_end = span.text_end

    def _voiced(self, frames: list[np.ndarray], seconds: dict[str, float], *, last: bool) -> Chunks:
        made = []
        before = time.perf_counter()
        for samples in self._parts.vocoder.steps(np.stack(frames)):
            yield None
            made.append(samples)
        spent = time.perf_counter() - before
        self._voice.pace.add("vocoder", spent, len(frames))
        seconds = {**seconds, "vocoder": spent}
        self._sizes.took(len(frames), sum(seconds.get(stage, 0.0) for stage in _OF_EACH_FRAME))
        yield self.chunk(np.concatenate(made), seconds, last=last)

    def chunk(self, samples: np.ndarray, seconds: dict[str, float], *, last: bool) -> SpeechChunk:
        """Return a chunk behind those before it."""
        first, self.samples = self.samples, self.samples + len(samples)
        self._played.made(len(samples) / self._voice.sample_rate)
        self.text_end = self._reached(last)
        self.finished = last
        clause = self._feed.clause_at(max(self.text_end - 1, 0))
        return SpeechChunk(samples, first, self.text_end, clause, seconds, last)

    def _reached(self, last: bool) -> int:
        if last:
            return len(self._feed.text)
        # The talker does not say where it is: its usual speed tells, and what it was given.
        guess = self._span.start + round(self._span.frames * _CHARACTERS_PER_FRAME)
        return max(self.text_end, min(guess, self._span.text_end))


def _check_length(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise SpeechRefused(
            f"the text has {len(text)} characters; up to {MAX_CHARACTERS} are said in one go: give "
            "it in parts"
        )


def _check_speakable(text: str) -> None:
    _check_length(text)
    if not any(character.isalnum() for character in text):
        raise nothing(text)
