# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Stage 1, `vision_encoder`: one camera's pixels to image tokens.

pixels float32 [3, height, width] in [-1, 1] -> image tokens float32 [tokens, text width], as the
connector leaves them (the backbone scales them). Real size: [3, 512, 512] -> [64, 960].
"""

from __future__ import annotations

import torch
from torch import nn

from ..common.vision import VisionTower
from .config import SmolVLAConfig
from .prefix import vision_positions


class VisionEncoder(VisionTower):
    """Patches, transformer, connector."""

    def __init__(self, config: SmolVLAConfig, *, shifted_positions: bool = False) -> None:
        vision = config.vision
        positions = vision_positions(
            *config.patches, vision.table_side, shifted=shifted_positions
        )
        super().__init__(vision, config.patches, positions)
        self.shuffle = config.shuffle
        self.connector = nn.Linear(
            vision.width * self.shuffle**2, config.text.width, bias=False
        )

    def connect(self, x: torch.Tensor) -> torch.Tensor:
        """Join shuffle x shuffle neighbouring patches into one token each, row by row."""
        s, width = self.shuffle, x.shape[1]
        blocks = x.view(self.rows // s, s, self.columns // s, s * width).permute(0, 2, 1, 3)
        return self.connector(blocks.reshape(-1, s * s * width))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.connect(self.features(pixels))
