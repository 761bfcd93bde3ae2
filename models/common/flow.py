# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that a flow-matching policy's host computes (numpy): positions, times, Euler's steps."""

from __future__ import annotations

import numpy as np

ROPE_BASE = 10000.0  # whatever the backbone's config says: the reference ignores it


def rope_tables(positions: np.ndarray, head_dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin, float32 [length, head_dim / 2], of integer positions [length]."""
    half = head_dim // 2
    exponents = np.float32(2.0 / head_dim) * np.arange(half, dtype=np.float32)
    timescale = np.power(ROPE_BASE, exponents.astype(np.float64)).astype(np.float32)
    angles = positions.astype(np.float32)[:, None] / timescale[None, :]
    # The sine of the float32 angle, rounded once.
    exact = angles.astype(np.float64)
    return np.cos(exact).astype(np.float32), np.sin(exact).astype(np.float32)


def time_embedding(t: float, width: int, min_period: float, max_period: float) -> np.ndarray:
    """Return [sin, cos] of t at geometrically spaced periods: float32 [1, width].

    t is rounded to float32 first, as the reference does; the shortest period turns that rounding
    into 1e-5 of the result.
    """
    fraction = np.linspace(0.0, 1.0, width // 2, dtype=np.float64)
    period = min_period * (max_period / min_period) ** fraction
    angles = (1.0 / period) * 2.0 * np.pi * np.float64(np.float32(t))
    return np.concatenate([np.sin(angles), np.cos(angles)]).astype(np.float32)[None, :]


def euler_times(steps: int) -> list[float]:
    """Times at which velocities are asked for: from 1 (noise) down towards 0 (actions)."""
    dt = -1.0 / steps
    return [1.0 + step * dt for step in range(steps)]
