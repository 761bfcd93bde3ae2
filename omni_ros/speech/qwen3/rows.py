# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the step programs take beside their embeddings: positions and masks."""

from __future__ import annotations

import numpy as np

#: Added to a score that must not count: its exponential is exactly 0.
MASKED = float(np.finfo(np.float32).min)


class Angles:
    """Rotary cosines and sines of the positions from 0, half split, as the reference has them."""

    def __init__(self, positions: int, head_dim: int, base: float) -> None:
        self._inverse = inverse_frequencies(head_dim, base)
        self.cos, self.sin = angles(np.arange(positions), self._inverse)


def inverse_frequencies(head_dim: int, base: float) -> np.ndarray:
    """Return float32 [head_dim / 2]."""
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    return (1.0 / np.power(np.float64(base), exponents.astype(np.float64))).astype(np.float32)


def angles(positions: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of positions times frequencies, float32 [positions, head_dim / 2]."""
    turned = (positions.astype(np.float32)[:, None] * inverse).astype(np.float64)
    return np.cos(turned).astype(np.float32), np.sin(turned).astype(np.float32)
