# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Stage 1, `vision_encoder`: one camera's pixels to image tokens.

pixels float32 [3, height, width] in [-1, 1] -> image tokens float32 [tokens, text width], as the
connector leaves them (the backbone scales them). Real size: [3, 512, 512] -> [64, 960].
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ..common.layers import LayerNorm, attend, gelu_tanh, merge_heads, split_heads
from .config import SmolVLAConfig, VisionConfig
from .prefix import vision_positions


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


class VisionEncoder(nn.Module):
    """Patches, transformer, connector."""

    def __init__(self, config: SmolVLAConfig, *, shifted_positions: bool = False) -> None:
        super().__init__()
        vision = config.vision
        self.rows, self.columns = config.patches
        self.shuffle = config.shuffle
        self.patch = vision.patch
        # The checkpoint's convolution of patch x patch with that stride: the same product, but one
        # that needs no change of memory layout and can be quantised like the others.
        self.patch_embedding = nn.Linear(3 * vision.patch**2, vision.width)
        self.position_table = nn.Parameter(torch.zeros(vision.table_side**2, vision.width))
        positions = vision_positions(
            self.rows, self.columns, vision.table_side, shifted=shifted_positions
        )
        self.in_table_order = bool(np.array_equal(positions, np.arange(vision.table_side**2)))
        self.register_buffer("positions", torch.from_numpy(positions), persistent=False)
        self.layers = nn.ModuleList(VisionLayer(vision) for _ in range(vision.layers))
        self.norm = LayerNorm(vision.width, vision.eps)
        self.connector = nn.Linear(
            vision.width * self.shuffle**2, config.text.width, bias=False
        )

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

    def connect(self, x: torch.Tensor) -> torch.Tensor:
        """Join shuffle x shuffle neighbouring patches into one token each, row by row."""
        s, width = self.shuffle, x.shape[1]
        blocks = x.view(self.rows // s, s, self.columns // s, s * width).permute(0, 2, 1, 3)
        return self.connector(blocks.reshape(-1, s * s * width))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.connect(self.features(pixels))
