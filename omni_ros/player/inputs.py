# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the player knows of the outside: measured joints, and the sources of chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from omni_ros.robot import Robot

#: More sources than this at once are a fault; the one not heard for longest is forgotten.
_MOST_SOURCES = 16
#: A pose is believed only if so many samples of each joint agree: one alone may be wrong.
_LEAST_SAMPLES = 3
#: Farther outside of the position limits than this share of its range no joint can be.
_OUTSIDE_SHARE = 0.1


class Measured:
    """Joint positions as measured, when, and whether they have stopped changing."""

    def __init__(self, robot: Robot) -> None:
        """Reserve memory for the joints of `robot`."""
        n = len(robot.joints)
        self.position = np.full(n, math.nan)
        self._times_ns = np.zeros(n, dtype=np.int64)
        self._index = {name: index for index, name in enumerate(robot.joint_names)}
        self._window_ns = round(robot.player.still_window_s * 1e9)
        # Slower than the still speed over the window: servos report in steps, so velocities
        # from neighbouring samples would never be zero.
        self._wander = robot.player.still_speed * robot.velocity * robot.player.still_window_s
        self._still_at = np.full(n, math.nan)
        # Of each joint: since when it is still, when that was last measured, and how often.
        self._still_since_ns = np.zeros(n, dtype=np.int64)
        self._still_seen_ns = np.zeros(n, dtype=np.int64)
        self._agreeing = np.zeros(n, dtype=np.int64)
        outside = _OUTSIDE_SHARE * (robot.upper - robot.lower)
        self._lowest, self._highest = robot.lower - outside, robot.upper + outside
        self.complete = False

    def update(
        self, names: Sequence[str], positions: Sequence[float], stamp_ns: int, now_ns: int
    ) -> None:
        """Take a JointState; unknown names, missing or non-finite positions are passed over.

        The age counts from the stamp; from reception where the stamp is 0 or in the future.
        """
        time_ns = stamp_ns if 0 < stamp_ns <= now_ns else now_ns
        seen = np.zeros(len(self.position), dtype=bool)
        for name, position in zip(names, positions):
            index = self._index.get(name)
            if index is None or not math.isfinite(position) or time_ns < self._times_ns[index]:
                continue
            self.position[index] = position
            self._times_ns[index] = time_ns
            seen[index] = True
        if not self.complete:
            self.complete = bool(np.isfinite(self.position).all())
        moved = seen & ~(np.abs(self.position - self._still_at) <= self._wander)
        self._still_at[moved] = self.position[moved]
        self._still_since_ns[moved] = now_ns
        self._agreeing[moved] = 0
        self._still_seen_ns[seen] = now_ns
        self._agreeing[seen] += 1

    @property
    def still(self) -> bool:
        """True if samples over the still window agree that no joint has moved."""
        return bool(
            self.complete
            and (self._agreeing >= _LEAST_SAMPLES).all()
            and (self._still_seen_ns - self._still_since_ns >= self._window_ns).all()
        )

    @property
    def impossible(self) -> bool:
        """True if a joint is measured where it cannot be, far outside of its limits."""
        position = self.position
        return bool(((position < self._lowest) | (position > self._highest)).any())

    @property
    def believable(self) -> bool:
        """True if the command may be put where the arm is measured."""
        return self.still and not self.impossible

    @property
    def possible_position(self) -> np.ndarray:
        """Positions (n,), drawn to the nearest where the joint can be."""
        return np.clip(self.position, self._lowest, self._highest)

    def age_s(self, now_ns: int) -> float:
        """Age of the joint measured longest ago, seconds; NaN before all were measured."""
        if not self.complete:
            return math.nan
        return (now_ns - int(self._times_ns.min())) * 1e-9

    def rebase(self, now_ns: int) -> None:
        """Count ages anew after a jump of the clock."""
        self._times_ns[:] = now_ns
        self._still_since_ns[:] = self._still_seen_ns[:] = now_ns
        self._agreeing[:] = 0


@dataclass
class Source:
    """A source of chunks: its last chunk id, last heartbeat, and whether its process ended."""

    last_id: int = -1
    beat_ns: int | None = None
    exited: bool = False


class Sources:
    """Sources by name; of bounded number."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}

    def get(self, name: str, keep: str = "") -> Source:
        """Return the source, new if not known; forgets another one if need be, but not `keep`."""
        source = self._sources.pop(name, None) or Source()
        self._sources[name] = source  # last in order: heard most recently
        if len(self._sources) > _MOST_SOURCES:
            del self._sources[next(known for known in self._sources if known != keep)]
        return source

    def beat_age_s(self, name: str, now_ns: int) -> float:
        """Age of the last heartbeat, seconds; NaN if the source never beat."""
        source = self._sources.get(name)
        if source is None or source.beat_ns is None:
            return math.nan
        return (now_ns - source.beat_ns) * 1e-9

    def rebase(self, now_ns: int) -> None:
        """Count ages and ids anew after a jump of the clock."""
        for source in self._sources.values():
            source.last_id = -1
            if source.beat_ns is not None:
                source.beat_ns = now_ns
