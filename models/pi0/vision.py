# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Stage 1, `vision_encoder`: one camera's pixels to image tokens.

pixels float32 [3, height, width] in [-1, 1] -> image tokens float32 [patches, text width], as the
projector leaves them, unscaled. Real size: [3, 224, 224] -> [256, 2048].
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ..common.vision import VisionTower
from .config import Pi0Config


class VisionEncoder(VisionTower):
    """Patches, transformer, projector."""

    def __init__(self, config: Pi0Config) -> None:
        super().__init__(config.vision, config.patches, np.arange(config.image_tokens))
        self.connector = nn.Linear(config.vision.width, config.text.width)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.connector(self.features(pixels))
