# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How many rows the arm will play while the next chunk is computed."""

from __future__ import annotations

import math
from collections import deque

#: Share of a row that a latency may exceed a whole number of rows by: clocks and periods round.
SLACK = 1e-3


class LatencyEstimator:
    """A percentile over a window of recent latencies.

    Neither the largest latency ever nor a first, slow call lasts: the first calls after a start
    are left out, and every other one leaves with the window.
    """

    def __init__(self, *, window: int = 30, percentile: float = 95.0, warm_up: int = 1,
                 expected_ns: int | None = None) -> None:
        """
        :param window: measurements kept. :param percentile: of them, 0 < percentile <= 100.
        :param warm_up: first measurements left out. :param expected_ns: taken while there is no
            measurement, for example the time measured when the programs were warmed up.
        :raises ValueError: a parameter is out of range.
        """
        if window < 1 or warm_up < 0:
            raise ValueError(
                f"latency window is {window}, warm_up {warm_up}; expected at least 1 and 0"
            )
        if not 0.0 < percentile <= 100.0:
            raise ValueError(f"latency percentile is {percentile}; expected above 0, at most 100")
        if expected_ns is not None and expected_ns < 0:
            raise ValueError(f"expected latency is {expected_ns} ns; expected 0 or more")
        self.percentile, self.warm_up, self.expected_ns = percentile, warm_up, expected_ns
        self._recent: deque[int] = deque(maxlen=window)
        self._warm: int | None = None
        self._seen = 0

    def add(self, latency_ns: int) -> None:
        """Take one measurement: stamp of the observation to the chunk being there.

        :raises ValueError: negative (the clock was set back: measure with a monotonic one).
        """
        if latency_ns < 0:
            raise ValueError(f"latency is {latency_ns} ns; expected 0 or more")
        self._seen += 1
        if self._seen > self.warm_up:
            self._recent.append(int(latency_ns))
        else:
            self._warm = min(latency_ns, latency_ns if self._warm is None else self._warm)

    def latency_ns(self) -> int:
        """Return the estimate; 0 if nothing at all is known."""
        if self._recent:
            ranked = sorted(self._recent)
            return ranked[max(0, math.ceil(len(ranked) * self.percentile / 100.0) - 1)]
        if self.expected_ns is not None:
            return int(self.expected_ns)
        # A warm-up call is too slow, but better than none: too long a delay only holds more rows.
        return int(self._warm or 0)

    def delay(self, *, dt_ns: int) -> int:
        """Return the estimate in rows of `dt_ns`, rounded up; always an int.

        :raises ValueError: `dt_ns` is not positive.
        """
        if dt_ns <= 0:
            raise ValueError(f"row period is {dt_ns} ns; expected above 0")
        return max(0, math.ceil(self.latency_ns() / dt_ns - SLACK))

    def reset(self) -> None:
        """Forget everything, as after a restart of the programs."""
        self._recent.clear()
        self._warm, self._seen = None, 0


def check_latency(latency_ns: int, *, chunk: int, execution_horizon: int, dt_ns: int) -> None:
    """Refuse a set-up whose chunks come too late to be played.

    :param latency_ns: a high percentile (99) of the time from observation to chunk.
    :raises ValueError: it reaches (chunk - execution_horizon) * dt: each chunk would be used up
        before the next one is there, for ever.
    """
    room_ns = (chunk - execution_horizon) * dt_ns
    if latency_ns >= room_ns:
        raise ValueError(
            f"a chunk takes {latency_ns / 1e6:.0f} ms, but only {room_ns / 1e6:.0f} ms of the old "
            f"one are left then: ({chunk} rows - {execution_horizon} executed) * "
            f"{dt_ns / 1e6:.1f} ms. Lower execution_horizon or the flow steps, or use a faster "
            "recipe"
        )
