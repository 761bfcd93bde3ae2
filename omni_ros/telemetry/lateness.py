# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How late ticks come: a histogram that never grows."""

from __future__ import annotations

import math

_LOWEST_NS = 1_000.0  # first bin: below 1 microsecond
_BINS_PER_DECADE = 40  # bins are 6 % wide, and so is the error of a percentile
_DECADES = 7  # up to 10 s
_SIZE = _BINS_PER_DECADE * _DECADES + 2


class Lateness:
    """Lateness of ticks in fixed logarithmic bins from 1 us to 10 s.

    Adding costs the same for the first tick and the millionth, and reserves nothing. Percentiles
    are the upper edge of their bin (never better than the truth, at most 6 % worse), capped by
    the exact maximum. Early ticks count as on time.
    """

    def __init__(self) -> None:
        self._bins = [0] * _SIZE
        self.count = 0
        self.max_ns = 0

    def add(self, late_ns: int) -> None:
        """Count one tick that came `late_ns` nanoseconds after its deadline."""
        late_ns = max(int(late_ns), 0)
        self._bins[_bin(late_ns)] += 1
        self.count += 1
        if late_ns > self.max_ns:
            self.max_ns = late_ns

    def percentile_ns(self, percent: float) -> int:
        """Lateness that `percent` of the ticks stayed within, nanoseconds; 0 without ticks."""
        if not 0.0 <= percent <= 100.0:
            raise ValueError(f"percent is {percent}, expected 0 to 100")
        if self.count == 0:
            return 0
        rank = max(1, math.ceil(self.count * percent / 100.0))
        seen = 0
        for index, number in enumerate(self._bins):
            seen += number
            if seen >= rank and index < _SIZE - 1:
                return min(_upper_edge_ns(index), self.max_ns)
        return self.max_ns

    def summary_s(self) -> tuple[float, float, float]:
        """Return (p50, p99, max) in seconds."""
        return (
            self.percentile_ns(50.0) * 1e-9,
            self.percentile_ns(99.0) * 1e-9,
            self.max_ns * 1e-9,
        )

    def clear(self) -> None:
        """Forget all ticks."""
        self._bins[:] = [0] * _SIZE
        self.count = 0
        self.max_ns = 0


def _bin(late_ns: int) -> int:
    if late_ns < _LOWEST_NS:
        return 0
    return min(1 + int(math.log10(late_ns / _LOWEST_NS) * _BINS_PER_DECADE), _SIZE - 1)


def _upper_edge_ns(index: int) -> int:
    return math.ceil(_LOWEST_NS * 10.0 ** (index / _BINS_PER_DECADE))
