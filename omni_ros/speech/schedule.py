# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How much sound to make next: little at first, so that it begins at once, then as much as it may.

A voice makes chunks of a few sizes. A small one is there sooner, a large one costs less for each
second of sound. The largest is taken that will be done, by what chunks of that size took before,
while the sink still has something to play.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

#: A chunk is expected to take this many times what it took.
MARGIN = 1.5
#: Seconds that a sink may need on top, to wake up and to take the chunk.
RESERVE_S = 0.010
#: Nothing else happens in the voice while a chunk is made, an abort neither.
MOST_S = 0.050
#: How fast a high cost is forgotten.
DECAY = 0.8


class Schedule:
    """Chooses sizes of chunks. One for a voice: what was measured holds for the next utterance.

    :param sizes: what can be made at a time, in frames of new sound, rising.
    :param frame_s: seconds of sound of a frame.
    :param guess_rtf: seconds of work a second of sound, until there is a measurement.
    :param most_s: a size that takes longer is used only if no smaller one keeps up.
    """

    def __init__(
        self, sizes: Sequence[int], frame_s: float, *, guess_rtf: float = 0.5,
        most_s: float = MOST_S,
    ) -> None:
        if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
            raise ValueError(
                f"sizes are {list(sizes)}: expected whole numbers that rise, from 1 on"
            )
        if not frame_s > 0:
            raise ValueError(f"frame_s is {frame_s}: expected seconds, more than 0")
        self.sizes, self.frame_s, self.most_s = tuple(sizes), frame_s, most_s
        self._guess = guess_rtf
        self._costs: dict[int, float] = {}

    def took(self, size: int, seconds: float) -> None:
        """Tell what a chunk took. A slow one counts at once, and is forgotten by and by."""
        if seconds >= 0:
            before = self._costs.get(size, seconds)
            self._costs[size] = max(seconds, DECAY * before + (1 - DECAY) * seconds)

    def cost(self, size: int) -> float:
        """Return the seconds that a chunk is expected to take; from the next sizes if unknown."""
        if size in self._costs:
            return self._costs[size]
        if not self._costs:
            return self._guess * size * self.frame_s
        nearest = min(self._costs, key=lambda known: abs(known - size))
        # What does not grow with the size is not known, so a smaller one may cost as much.
        return self._costs[nearest] * max(1.0, size / nearest)

    def next(self, slack_s: float) -> int:
        """Return the size to make now.

        :param slack_s: seconds of sound that the sink still has to play; 0 before the first.
        """
        keeping_up = [s for s in self.sizes if self.cost(s) < s * self.frame_s]
        if not keeping_up:
            # There will be gaps whatever is chosen: as few as can be.
            return min(self.sizes, key=lambda size: self.cost(size) / size)
        allowed = [s for s in keeping_up if self.cost(s) <= self.most_s] or keeping_up[:1]
        in_time = [s for s in allowed if self.cost(s) * MARGIN + RESERVE_S <= slack_s]
        return in_time[-1] if in_time else self.sizes[0] if slack_s <= 0 else allowed[0]


class PlayedFrom:
    """Slack where no sink tells it: as if what is made were played from the first chunk on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end: float | None = None

    def made(self, seconds: float) -> None:
        """Tell that a chunk was handed over."""
        now = self._clock()
        self._end = max(now, now if self._end is None else self._end) + seconds

    def __call__(self) -> float:
        """Return the slack in seconds."""
        return 0.0 if self._end is None else max(0.0, self._end - self._clock())
