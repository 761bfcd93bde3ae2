# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A Piper voice: espeak-ng's phonemes, then three small networks as ExecuTorch programs.

The first sound needs the text encoder once, the flow and the decoder for one window each; all that
follows is made while it plays.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from omni_ros.bundles import open_bundle
from omni_ros.bundles.piper_layout import read_symbols, read_table
from omni_ros.programs import ProgramError, set_threads
from omni_ros.speech.clauses import Clause
from omni_ros.speech.phonemes import Espeak
from omni_ros.speech.piper_text import Draw, SymbolTable, TextEncoder
from omni_ros.speech.piper_windows import ClauseSound, Decoder, Flow
from omni_ros.speech.pipeline import Script, Spoken, Utterances
from omni_ros.speech.schedule import PlayedFrom, Schedule
from omni_ros.speech.text import normalise
from omni_ros.speech.voice import SpeechChunk, SpeechRefused, Utterance, check_utterance

#: Slower or faster than this the voice was never trained for, and is not understood.
RATES = (0.5, 2.0)
#: An abort is seen between two programs, and the sink is silenced beside it. Where other work makes
#: the large window slow, small ones, which cost twice as much, would make it worse.
MOST_S = 0.2


class PiperVoice:
    """See :class:`.voice.Voice`. :raises as :func:`.voice.open_voice`."""

    speakers: tuple[str, ...] = ()
    rates = RATES

    def __init__(
        self, bundle: Path, threads: int = 0, cpus: Sequence[int] | None = None
    ) -> None:
        make_pool(threads, cpus)
        opened = open_bundle(bundle)
        manifest = opened.manifest
        self.name, self.languages = manifest.name, (manifest.sound.language,)
        self.sample_rate = manifest.sound.sample_rate
        self.frame_samples = manifest.sound.frame_samples
        self._drawing = manifest.drawing
        self._table = SymbolTable(
            read_symbols(opened), np.array(read_table(opened)), manifest.text.sizes[-1]
        )
        self._espeak = Espeak(manifest.symbols.espeak_voice, cpus)
        try:
            parts = {
                part: {n: opened.load(f"{part}_{n}") for n in getattr(manifest, part).sizes}
                for part in ("text", "flow", "decoder")
            }
        except BaseException:
            self._espeak.close()
            raise
        self._programs = [program for part in parts.values() for program in part.values()]
        self._encoder = TextEncoder(parts["text"])
        self._flow = Flow(parts["flow"], manifest.flow.context)
        self._decoder = Decoder(parts["decoder"], manifest.decoder.context, self.frame_samples)
        frame_s = self.frame_samples / self.sample_rate
        self._windows = {self._decoder.new_frames(size): size for size in self._decoder.sizes}
        self._schedule = Schedule(tuple(self._windows), frame_s, most_s=MOST_S)
        self._utterances = Utterances(self.name)
        self._closed = False
        try:
            self._warm_up()
        except BaseException:
            self.close()
            raise

    def start(
        self, text: str | Iterable[str], utterance: Utterance = Utterance(),
        slack: Callable[[], float] | None = None,
    ) -> Iterator[SpeechChunk]:
        """See :meth:`.voice.Voice.start`."""
        utterance = check_utterance(self, utterance)
        script = Script(text, normalise)
        return self._utterances.begin(lambda wanted: self._speak(script, utterance, slack, wanted))

    def abort(self) -> None:
        """See :meth:`.voice.Voice.abort`."""
        self._utterances.abort()

    def close(self) -> None:
        """See :meth:`.voice.Voice.close`."""
        self._utterances.close()
        if not self._closed:
            self._closed = True
            self._espeak.close()
            for program in self._programs:
                program.close()

    def __enter__(self) -> PiperVoice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- one utterance ---------------------------------------------------------------------------

    def _speak(
        self, script: Script, utterance: Utterance, slack: Callable[[], float] | None,
        wanted: Callable[[], bool],
    ) -> Generator[SpeechChunk | None, None, None]:
        """Yield chunks, and None wherever the utterance may be given up."""
        played = PlayedFrom()
        draw = Draw.of(
            self._drawing, rate=utterance.rate, seed=utterance.seed,
            deterministic=utterance.deterministic,
        )
        spoken = Spoken(script)
        number = 0
        for clause, words in script.clauses():
            if clause is None:
                yield None
                continue
            timings: dict[str, float] = {}
            pieces = self._phonemes(words, timings, wanted)
            for index, piece in enumerate(pieces):
                yield None
                sound = self._begin(piece, draw, number, timings)
                number += 1
                share = (index / len(pieces), (index + 1) / len(pieces))
                while not sound.over:
                    want = self._schedule.next(slack() if slack is not None else played())
                    samples = None
                    for samples in sound.steps(self._windows[want], timings):
                        if samples is None:
                            yield None
                    assert samples is not None
                    self._learn(want, len(samples), timings)
                    done = share[0] + (share[1] - share[0]) * sound.spoken / sound.total
                    end = sound.over and index + 1 == len(pieces)
                    if end:
                        samples = self._with_pause(samples, clause, script)
                    played.made(len(samples) / self.sample_rate)
                    yield spoken.chunk(samples, clause, done, timings, end)
                    timings = {}
        if not spoken.ended:
            yield spoken.rest()

    def _phonemes(
        self, words: str, timings: dict[str, float], wanted: Callable[[], bool]
    ) -> list[str]:
        began = time.perf_counter()
        phonemes = self._table.known(self._espeak.phonemes(words, wanted))
        timings["phonemes"] = time.perf_counter() - began
        # What has marks and no sounds makes a noise at best.
        pieces = self._table.pieces(phonemes)
        return [piece for piece in pieces if any(symbol.isalpha() for symbol in piece)]

    def _begin(
        self, piece: str, draw: Draw, number: int, timings: dict[str, float]
    ) -> ClauseSound:
        began = time.perf_counter()
        symbols = self._table.symbols(piece)
        drawn = self._encoder.draw(symbols, draw, number, self._decoder.sizes[0])
        if not np.isfinite(drawn).all():
            raise SpeechRefused(
                f"{piece!r} has no sound in the voice {self.name}; word it otherwise"
            )
        timings["text"] = timings.get("text", 0.0) + time.perf_counter() - began
        return ClauseSound(drawn, self._flow, self._decoder)

    def _learn(self, want: int, samples: int, timings: dict[str, float]) -> None:
        """Tell the schedule what a window of this size takes, without what comes once a clause."""
        frames = samples // self.frame_samples
        if frames >= want:
            self._schedule.took(want, sum(timings.get(name, 0.0) for name in ("flow", "decoder")))

    def _with_pause(self, samples: np.ndarray, clause: Clause, script: Script) -> np.ndarray:
        """Put the silence behind a clause, unless it is known to be the last one."""
        if script.over:
            return samples
        return np.concatenate((
            samples, np.zeros(round(clause.pause_s * self.sample_rate), np.float32)
        ))

    def _warm_up(self) -> None:
        """Run every program once, so that the first sentence is as fast as the next."""
        for window in (0.0, 10.0):
            for _ in self.start("Ready to speak, in one long sentence that fills a window.",
                                slack=lambda window=window: window):
                pass


def make_pool(threads: int, cpus: Sequence[int] | None) -> None:
    """Make the process's pool of threads, on the cores that it may use.

    :param threads: 0: as many as cores, unless there is a pool in use already.
    :raises ProgramError: another number than that of a pool that is in use.
    """
    before = os.sched_getaffinity(0)
    try:
        if cpus is not None:
            # Threads are born on the cores of the one that makes them.
            os.sched_setaffinity(0, cpus)
        set_threads(threads or len(os.sched_getaffinity(0)))
    except ProgramError:
        if threads:
            raise
    finally:
        os.sched_setaffinity(0, before)
