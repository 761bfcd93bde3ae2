# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Rotary positions as tables that a host hands to the programs.

Two libraries round the same angle differently, which at position 800 moves it by 6e-5:

    timescale   position / base^(2i/d)        (SmolVLA, as LeRobot has it)
    frequency   position * (1 / base^(2i/d))  (Gemma, as transformers has it)
"""

from __future__ import annotations

import numpy as np

ROPE_BASE = 10000.0  # whatever the backbone's config says: the references ignore it
KINDS = ("timescale", "frequency")


def rope_tables(
    positions: np.ndarray, head_dim: int, *, base: float = ROPE_BASE, kind: str = "timescale"
) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin, float32 [length, head_dim / 2], of integer positions [length]."""
    half = head_dim // 2
    exponents = np.float32(2.0 / head_dim) * np.arange(half, dtype=np.float32)
    timescale = np.power(base, exponents.astype(np.float64)).astype(np.float32)
    if kind == "timescale":
        angles = positions.astype(np.float32)[:, None] / timescale[None, :]
    elif kind == "frequency":
        angles = positions.astype(np.float32)[:, None] * (np.float32(1.0) / timescale)[None, :]
    else:
        raise ValueError(f"rotary positions of kind {kind!r}; expected one of {', '.join(KINDS)}")
    # The sine of the float32 angle, rounded once.
    exact = angles.astype(np.float64)
    return np.cos(exact).astype(np.float32), np.sin(exact).astype(np.float32)


class RopeTable:
    """The tables of every position up to a last one, so that a call only picks rows."""

    def __init__(
        self, positions: int, head_dim: int, *, base: float = ROPE_BASE, kind: str = "timescale"
    ) -> None:
        """:param positions: how many there are, counted from 0."""
        self._cos, self._sin = rope_tables(np.arange(positions), head_dim, base=base, kind=kind)

    def pick(self, positions: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> None:
        """Write the rows of `positions`, an integer array [length], to cos and sin.

        A position below 0, as masked tokens before the first valid one have it, counts as 0.
        """
        # mode="clip" writes straight to `out`; the default one goes through a copy.
        np.take(self._cos, positions, axis=0, out=cos, mode="clip")
        np.take(self._sin, positions, axis=0, out=sin, mode="clip")
