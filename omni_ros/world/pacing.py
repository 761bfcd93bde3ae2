# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps a simulation at a multiple of real time, by absolute deadlines."""

from __future__ import annotations

#: How far behind it may fall before it gives time up, seconds.
MAX_LAG_S = 0.1


class Pacer:
    """Says how many steps are due; all times are nanoseconds of a steady clock.

    Steps that come late are made up for, so a pause costs no simulated time. A machine that is too
    slow for the simulation would then owe ever more steps; lag beyond `MAX_LAG_S` is therefore
    forgiven, counted in `slipped_ns`, and simulated time runs slower than asked.
    """

    def __init__(self, period_s: float, real_time_factor: float = 1.0) -> None:
        if period_s <= 0 or real_time_factor <= 0:
            raise ValueError(
                f"period {period_s} s and real-time factor {real_time_factor} must be above 0"
            )
        self.interval_ns = round(period_s * 1e9 / real_time_factor)
        self.slipped_ns = 0
        self.steps = 0
        self._next_ns = 0

    def start(self, now_ns: int) -> None:
        """Begin: the first step is due one interval from now."""
        self._next_ns = now_ns + self.interval_ns

    @property
    def deadline_ns(self) -> int:
        """When the next step is due."""
        return self._next_ns

    def due(self, now_ns: int) -> bool:
        """Return whether a step is due; it then counts as done and the deadline moves on."""
        lag = now_ns - self._next_ns
        if lag < 0:
            return False
        if lag > MAX_LAG_S * 1e9:
            self.slipped_ns += lag
            self._next_ns = now_ns
        self._next_ns += self.interval_ns
        self.steps += 1
        return True


class Divider:
    """Picks from a stream of times those at which something of a lower rate is due."""

    def __init__(self, rate_hz: float) -> None:
        self._interval_ns = round(1e9 / rate_hz) if rate_hz > 0 else 0
        self._next_ns: int | None = None

    def due(self, now_ns: int) -> bool:
        """Return whether it is due at this time; rate 0 is never due."""
        if self._interval_ns == 0:
            return False
        if self._next_ns is None:
            self._next_ns = now_ns
        if now_ns < self._next_ns:
            return False
        # Whole intervals, so that the average rate holds whatever the times' spacing.
        self._next_ns += (1 + (now_ns - self._next_ns) // self._interval_ns) * self._interval_ns
        return True
