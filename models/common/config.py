# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of the networks that policies are built of, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VisionConfig:
    """A SigLIP-like tower over square patches."""

    width: int
    mlp: int
    layers: int
    heads: int
    patch: int
    table_side: int  # the position table covers table_side x table_side patches
    eps: float


@dataclass(frozen=True)
class TextConfig:
    """A Llama-like decoder of which only the first `layers` are used."""

    width: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    eps: float

    @property
    def kv_width(self) -> int:
        """Values of one token's keys."""
        return self.kv_heads * self.head_dim
