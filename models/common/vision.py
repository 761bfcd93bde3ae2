# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A SigLIP-like tower: pixels of one camera to features of its patches."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from .config import VisionConfig
from .layers import LayerNorm, attend, gelu_tanh, merge_heads, split_heads


class VisionLayer(nn.Module):
    """Pre-norm transformer layer with full attention: [patches, width] to the same."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.attention_norm = LayerNorm(width, config.eps)
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.o = nn.Linear(width, width)
        self.mlp_norm = LayerNorm(width, config.eps)
        self.up = nn.Linear(width, config.mlp)
        self.down = nn.Linear(config.mlp, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.attention_norm(x)
        queries = split_heads(self.q(normed), self.heads)
        keys = split_heads(self.k(normed), self.heads).permute(0, 2, 1)
        values = split_heads(self.v(normed), self.heads)
        x = x + self.o(merge_heads(attend(queries, keys, values)))
        return x + self.down(gelu_tanh(self.up(self.mlp_norm(x))))


class VisionTower(nn.Module):
    """Patches and transformer layers, of a grid of rows x columns patches."""

    def __init__(self, vision: VisionConfig, grid: tuple[int, int], positions: np.ndarray) -> None:
        """:param positions: row of the position table for each patch, int64 [rows * columns]."""
        super().__init__()
        self.rows, self.columns = grid
        self.patch = vision.patch
        # The checkpoint's convolution of patch x patch with that stride: the same product, but one
        # that needs no change of memory layout and can be quantised like the others.
        self.patch_embedding = nn.Linear(3 * vision.patch**2, vision.width)
        self.position_table = nn.Parameter(torch.zeros(vision.table_side**2, vision.width))
        self.in_table_order = bool(np.array_equal(positions, np.arange(vision.table_side**2)))
        self.register_buffer("positions", torch.from_numpy(positions), persistent=False)
        self.layers = nn.ModuleList(VisionLayer(vision) for _ in range(vision.layers))
        self.norm = LayerNorm(vision.width, vision.eps)

    def gather_positions(self) -> None:
        """Reorder the position table once, so that the program holds no gather."""
        if not self.in_table_order:
            with torch.no_grad():
                self.position_table = nn.Parameter(self.position_table[self.positions].clone())
            self.in_table_order = True

    def features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the tower's last hidden state, [patches, width]."""
        side = self.patch
        patches = pixels.view(3, self.rows, side, self.columns, side).permute(1, 3, 0, 2, 4)
        x = self.patch_embedding(patches.reshape(self.rows * self.columns, 3 * side * side))
        table = self.position_table
        x = x + (table if self.in_table_order else table[self.positions])
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)
