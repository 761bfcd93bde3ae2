# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of the table-top policy."""

from __future__ import annotations

from omni_ros.world.expert import ROWS

from ..smolvla.config import SmolVLAConfig, TextConfig, VisionConfig
from .episode import IMAGE

LAYERS = 4

#: A prompt of training needs up to 14 tokens; there is room for wordier people.
CONFIG = SmolVLAConfig(
    vision=VisionConfig(width=128, mlp=512, layers=4, heads=4, patch=12, table_side=IMAGE // 12,
                        eps=1e-6),
    text=TextConfig(width=128, mlp=384, layers=LAYERS, heads=4, kv_heads=2, head_dim=32,
                    vocabulary=512, eps=1e-5),
    shuffle=2, expert_width=96, expert_mlp=256,
    self_attention=tuple(layer % 2 == 0 for layer in range(LAYERS)),
    chunk=ROWS, steps=10, action=6, state=6, max_action=6, max_state=6,
    image_height=IMAGE, image_width=IMAGE, language=32, special_tokens=False,
    min_period=0.004, max_period=4.0, n_action_steps=8,
)

#: Cells of the grid of image tokens, a side.
CELLS = IMAGE // CONFIG.vision.patch // CONFIG.shuffle
