# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""When the next tick is due: absolute deadlines, on the machine's clock or on a simulated one.

Deadlines are absolute so that lateness does not add up: a loop that sleeps for a period after each
tick drifts by the time the tick takes.
"""

from __future__ import annotations

import time
from typing import Callable


class WallPacer:
    """Ticks of a fixed period by the monotonic clock of the machine.

    :param period_ns: nanoseconds between ticks.
    :param monotonic_ns, sleep: the clock, for tests.
    """

    def __init__(self, period_ns: int, monotonic_ns: Callable[[], int] = time.monotonic_ns,
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self._period_ns = period_ns
        self._monotonic_ns = monotonic_ns
        self._sleep = sleep
        self._due_ns = monotonic_ns() + period_ns

    def wait(self) -> int:
        """Sleep until the next deadline; return nanoseconds late.

        Deadlines slept through whole are skipped, not caught up in a burst.
        """
        remaining = self._due_ns - self._monotonic_ns()
        if remaining > 0:
            self._sleep(remaining * 1e-9)
        late = max(0, self._monotonic_ns() - self._due_ns)
        self._due_ns += (late // self._period_ns + 1) * self._period_ns
        return late

    def slack_s(self) -> float:
        """Seconds left before the next deadline."""
        return (self._due_ns - self._monotonic_ns()) * 1e-9


class SimPacer:
    """Ticks of a fixed period by a clock that may stand still, run at any rate, or be set back.

    :param period_ns: nanoseconds of that clock between ticks.
    :param now_ns: reads the clock; 0 or less means that it has not started.
    :param poll_s: seconds of the machine between two looks at it.
    """

    def __init__(self, period_ns: int, now_ns: Callable[[], int], poll_s: float = 0.002,
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self._period_ns = period_ns
        self._now_ns = now_ns
        self._poll_s = poll_s
        self._sleep = sleep
        self._due_ns: int | None = None

    def wait(self, give_up_s: float = 0.1) -> int | None:
        """Wait for the next deadline; return nanoseconds late, by that clock.

        None if the clock did not reach the deadline within `give_up_s` of the machine's time.

        A clock set back starts a new row of deadlines.
        """
        waited = 0.0
        while True:
            now = self._now_ns()
            if now > 0:
                if self._due_ns is None or now < self._due_ns - self._period_ns:
                    self._due_ns = now
                if now >= self._due_ns:
                    late = now - self._due_ns
                    self._due_ns += (late // self._period_ns + 1) * self._period_ns
                    return late
            if waited >= give_up_s:
                return None
            self._sleep(self._poll_s)
            waited += self._poll_s

    def slack_s(self) -> float:
        """Seconds left before the next look at the clock."""
        return self._poll_s
