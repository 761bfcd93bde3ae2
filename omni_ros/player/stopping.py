# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The quickest stop within acceleration and jerk limits, in whole periods and in closed form.

Motion is sampled: v(k) = v(k-1) + a(k) T and a(k) = a(k-1) + j(k) T. A stop of m periods is a
list a(1..m) that starts from the present a, ends in 0, changes by at most J T a period, stays
within A, and whose sum takes the velocity to zero. For a given m the largest and the smallest
such lists are known (straight ramps, cut off at A), every mixture of two lists that fit also
fits, and so the shortest m is the first whose two extremes enclose the sum needed; the mixture
that hits the sum exactly is the stop. It always exists, ends exactly at rest, and costs no search.
"""

from __future__ import annotations

import numpy as np


class Stopping:
    """Stops for n joints. Arrays of velocity, acceleration and jerk limits have shape (n,)."""

    def __init__(
        self,
        velocity: np.ndarray,
        acceleration: np.ndarray,
        jerk: np.ndarray,
        period_s: float,
        most_periods: int = 1000,
    ) -> None:
        """Reserve tables; raises ValueError if a stop can take over `most_periods` periods."""
        self.period_s = period_s
        # Everything is counted in steps of what the jerk limit allows in one period.
        self._a_unit = jerk * period_s
        self._v_unit = self._a_unit * period_s
        self._a_limit = acceleration / self._a_unit
        self.periods = self._longest(velocity, acceleration, most_periods)
        self._lengths = np.arange(self.periods + 1, dtype=np.float64)
        self._index = np.arange(1, self.periods + 1, dtype=np.float64)

    def _longest(self, velocity: np.ndarray, acceleration: np.ndarray, most: int) -> int:
        length = 8
        while length <= 2 * most:
            self._lengths = np.arange(length + 1, dtype=np.float64)
            # The longest stop: full speed one way and still speeding up that way.
            sums = self._largest_sums(-acceleration / self._a_unit)
            good = sums >= (velocity / self._v_unit)[:, None]
            if good.any(axis=1).all():
                longest = int(np.argmax(good, axis=1).max())
                if longest <= most:
                    return longest + 1
            length *= 2
        raise ValueError(
            f"a stop from full velocity takes over {most} periods of {self.period_s:g} s:"
            " raise the acceleration or jerk limits, or lower the rate"
        )

    def _largest_sums(self, alpha: np.ndarray) -> np.ndarray:
        """Sum of the largest list for each length, shape alpha.shape + (lengths,)."""
        m = self._lengths
        alpha = alpha[..., None]
        limit = self._a_limit[:, None]
        rising = np.minimum((m - alpha) * 0.5, limit - alpha)
        np.floor(rising, out=rising)
        np.clip(rising, 0.0, m, out=rising)
        falling = m + 1.0 - np.maximum(rising + 1.0, np.ceil(m - limit))
        sums = rising * (alpha + 0.5 * (rising + 1.0))
        sums += limit * (m - rising - falling)
        sums += 0.5 * falling * (falling - 1.0)
        # Lengths too short to bring the acceleration back to zero do not count.
        sums[m < np.abs(alpha)] = -np.inf
        return sums

    def plan(
        self, velocity: np.ndarray, acceleration: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Plan the stop from each state; inputs are float64 (..., n), within the limits.

        Returns accelerations and velocities after 1, 2, ... periods, each (..., n, periods) and
        exactly zero once stopped, and whether the stop fits into that many periods (..., n).
        """
        alpha = acceleration / self._a_unit
        need = velocity / -self._v_unit
        # By symmetry look only at stops that need an upward push, beyond letting go of alpha.
        flip = np.where(need < _ramp_out(alpha), -1.0, 1.0)
        alpha = alpha * flip
        need = need * flip
        sums = self._largest_sums(alpha)
        good = sums >= need[..., None]
        m = np.argmax(good, axis=-1)
        fits = np.take_along_axis(good, m[..., None], axis=-1)[..., 0]
        left = np.maximum(m[..., None] - self._index, 0.0)
        limit = self._a_limit[:, None]
        up = np.minimum(np.minimum(limit, alpha[..., None] + self._index), left)
        down = np.maximum(np.maximum(-limit, alpha[..., None] - self._index), -left)
        low = down.sum(axis=-1)
        span = up.sum(axis=-1) - low
        share = np.where(span > 0.0, (need - low) / np.where(span > 0.0, span, 1.0), 0.0)
        np.clip(share, 0.0, 1.0, out=share)
        a = (down + share[..., None] * (up - down)) * (flip * self._a_unit)[..., None]
        v = velocity[..., None] + np.cumsum(a, axis=-1) * self.period_s
        # Rounding leaves 1e-16 or so; at rest means exactly at rest.
        v[left <= 0.0] = 0.0
        return a, v, fits


def _ramp_out(alpha: np.ndarray) -> np.ndarray:
    """Sum over the periods in which alpha is let go at one step a period."""
    size = np.abs(alpha)
    whole = np.floor(size)
    return np.copysign(whole * size - 0.5 * whole * (whole + 1.0), alpha)
