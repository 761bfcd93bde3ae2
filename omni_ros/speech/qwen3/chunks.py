# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How many frames go to the vocoder at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from omni_ros.speech.schedule import Schedule

from .compat import ChunkRules, CompatSchedule
from .options import QwenOptions
from .pace import Pace


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
        self._target = 0
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
            self._target = self._schedule.next(self._slack())
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
