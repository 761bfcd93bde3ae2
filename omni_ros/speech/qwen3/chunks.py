# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How many frames go to the vocoder at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from .compat import ChunkRules, CompatSchedule
from .options import QwenOptions
from .pace import Pace

#: What of the listener's buffer is not spent while the next chunk is made.
_MARGIN_S = 0.05


class Chunks:
    """One utterance's chunks: vLLM-Omni's for windows, else by what a frame costs here.

    By cost: the first has one frame, so that sound starts at once; the next ones have as many as
    can be made while what was played lasts, up to the largest program's. A frame costs the same in
    a large chunk as in a small one, so that there is nothing to gain beyond.
    """

    def __init__(self, options: QwenOptions, pace: Pace, sizes: tuple[int, ...]) -> None:
        self._pace, self._buffer_first = pace, options.buffer_first
        self._rules: ChunkRules | None = None
        self._compat: CompatSchedule | None = None
        self.most = max(sizes)
        self._first = True
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

    def size(self, waiting: int, slack: Callable[[], float], expected: int) -> int:
        """Return how many of the frames that wait are to be voiced now; 0: make more first.

        :param slack: seconds that the listener still has. :param expected: frames of the whole.
        """
        if self._compat is not None:
            self._frames += 1
            elapsed = 1e3 * (time.monotonic() - self._started)
            emission = self._compat.step(self._frames, elapsed)
            return emission.frames if emission else 0
        wanted = self._wanted(waiting, slack, expected)
        if waiting < wanted:
            return 0
        self._first = False
        return waiting

    def _wanted(self, waiting: int, slack: Callable[[], float], expected: int) -> int:
        if self._first:
            return self._pace.frames_to_buffer(expected) if self._buffer_first else 1
        if waiting >= self.most:
            return waiting
        # Those that wait are made: what is left is voicing them, and one more frame.
        cost = self._pace.cost + (waiting - 1) * self._pace.per_frame.get("vocoder", 0.0)
        return waiting + 1 if slack() - _MARGIN_S > cost + self._pace.cost else waiting
