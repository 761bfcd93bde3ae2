# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a frame costs on this machine, and whether that is less than it sounds."""

from __future__ import annotations

import math

_SHARE = 0.15
#: Of a frame's time; what is above it leaves nothing for whatever else the machine does.
_COMFORT = 0.95
#: What a text token takes when it is spoken, on average of English; only to guess a length ahead.
FRAMES_PER_TOKEN = 3.6


class Pace:
    """Seconds a frame, by stage; follows what is measured."""

    def __init__(self, frame_s: float) -> None:
        self.frame_s = frame_s
        self.per_frame: dict[str, float] = {}

    def add(self, stage: str, seconds: float, frames: int = 1) -> None:
        """Note what `frames` frames took in a stage."""
        cost = seconds / frames
        old = self.per_frame.get(stage)
        self.per_frame[stage] = cost if old is None else old + _SHARE * (cost - old)

    @property
    def cost(self) -> float:
        """Seconds that a frame takes in all stages."""
        return sum(self.per_frame.values())

    @property
    def factor(self) -> float:
        """Cost over length; below 1 speech is made faster than it sounds."""
        return self.cost / self.frame_s

    def keeps_up(self) -> bool:
        """Return whether speech is made quickly enough not to run dry."""
        return self.factor <= _COMFORT

    def verdict(self) -> str:
        """Return what there is to say about it in numbers, "" if it keeps up."""
        if self.keeps_up():
            return ""
        parts = ", ".join(f"{name} {1e3 * cost:.0f}" for name, cost in self.per_frame.items())
        gaps = (
            "speech may have gaps when anything else runs" if self.factor <= 1.0 else
            f"speech will have gaps, some {self.gap_share():.0%} of the time"
        )  # fmt: skip
        return (
            f"this machine takes {1e3 * self.cost:.0f} ms for a frame of {1e3 * self.frame_s:.0f} "
            f"ms ({parts}): {gaps}. Give it more or freer cores, export with a smaller recipe (int8, "
            "int4), or let it buffer first (buffer_first)"
        )

    def gap_share(self) -> float:
        """Return how much of an utterance would be silence where it runs dry."""
        return max(0.0, 1.0 - 1.0 / self.factor) if self.cost > 0 else 0.0

    def frames_to_buffer(self, frames: int) -> int:
        """Return how many of an utterance's frames must be there before it is played for playback
        not to run dry."""
        return min(frames, math.ceil(frames * self.gap_share()))
