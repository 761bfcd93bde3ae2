# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How many frames go to the vocoder at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from omni_ros.speech.schedule import Schedule

from .compat import ChunkRules, CompatSchedule
from .options import QwenOptions
from .pace import Pace

#: How much longer than expected the second chunk may take before playback runs dry.
_MARGIN, _RESERVE_S = 1.25, 0.010
#: Of what a chunk sounds, the most that it may take for playback to last.
_COMFORT = 0.97


def first_chunk(schedule: Schedule) -> int:
    """Return the smallest first chunk that sounds as long as the next one takes.

    One frame where frames are made quickly; more where they barely keep up.
    """
    frame_s = schedule.frame_s
    costs = [schedule.cost(size) for size in schedule.sizes
             if schedule.cost(size) <= _COMFORT * size * frame_s]  # fmt: skip
    if not costs:
        return schedule.next(0.0)
    return max(1, math.ceil((min(costs) * _MARGIN + _RESERVE_S) / frame_s))


class ChunkSizes:
    """One utterance's chunks: vLLM-Omni's for windows, else what the shared schedule says."""

    def __init__(self, options: QwenOptions, pace: Pace, schedule: Schedule,
                 slack: Callable[[], float]) -> None:
        """:param slack: seconds of sound that the listener still has."""
        self._pace, self._schedule, self._slack = pace, schedule, slack
        self._buffer_first = options.buffer_first
        self._rules: ChunkRules | None = None
        self._compat: CompatSchedule | None = None
        self.most = max(schedule.sizes)
        self._target, self._begins = 0, True
        if options.vocoder == "windows":
            self._rules = ChunkRules(
                options.chunk_frames, options.left_context_frames, options.first_chunk_frames,
                options.ramp, options.adaptive)  # fmt: skip
            self.most = options.chunk_frames
        self.begin_span()

    def begin_span(self) -> None:
        """Start the next span: to vLLM-Omni each is a request of its own."""
        if self._rules is not None:
            self._compat = CompatSchedule(self._rules, windows=True)
        self._frames, self._started = 0, time.monotonic()

    def ready(self, waiting: int, expected: int) -> bool:
        """Return whether the frames that wait are to be voiced now. Ask after every frame.

        :param expected: frames of the whole, as far as it is known.
        """
        if self._compat is not None:
            self._frames += 1
            elapsed = 1e3 * (time.monotonic() - self._started)
            return self._compat.step(self._frames, elapsed) is not None
        if not self._target:
            slack = self._slack()
            begins = self._begins and slack <= 0
            self._target = first_chunk(self._schedule) if begins else self._schedule.next(slack)
            self._begins = False
        target = self._target
        if self._buffer_first:
            target = max(target, self._pace.frames_to_buffer(expected))
        if waiting < target:
            return False
        self._target, self._buffer_first = 0, False
        return True

    def cut(self, frames: int) -> list[int]:
        """Return the chunks of so many frames that are all there already."""
        if self._rules is None:
            return [frames]
        schedule = CompatSchedule(self._rules, windows=True)
        steps = [schedule.step(made) for made in range(1, frames + 1)]
        sizes = [step.frames for step in steps if step is not None]
        return [*sizes, frames - sum(sizes)]

    def took(self, frames: int, seconds: float) -> None:
        """Tell what a chunk took in all stages."""
        if frames in self._schedule.sizes:
            self._schedule.took(frames, seconds)
