# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Easing from rest into a plan."""

from __future__ import annotations

import numpy as np


class Ramp:
    """Fades from a fixed pose (or zero velocity) to the targets, with no jump in acceleration."""

    def __init__(self, length_s: float, n: int) -> None:
        """`length_s` 0 means no ramp."""
        self._length_ns = length_s * 1e9
        self._start_ns = 0
        self._origin = np.zeros(n)
        self.active = False

    def start(self, now_ns: int, origin: np.ndarray) -> None:
        """Begin at `origin`, float64 (n,)."""
        self._start_ns = now_ns
        self._origin[:] = origin
        self.active = self._length_ns > 0.0

    def apply(self, times_ns: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the targets (k, n) for rising instants (k,), faded; ends by itself."""
        since = times_ns - self._start_ns
        if not self.active or since[0] >= self._length_ns:
            self.active = False
            return targets
        s = np.clip(since / self._length_ns, 0.0, 1.0)[:, None]
        share = s * s * s * (10.0 + s * (6.0 * s - 15.0))
        return self._origin + share * (targets - self._origin)
