# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""π0 and π0.5 as three stages that become three static programs.

    vision_encoder   pixels of one camera                           -> image tokens     (`vision`)
    fusion_backbone  image tokens, prompt                           -> keys and values  (`backbone`)
    action_head      noisy actions, time, (π0) state, keys, values  -> velocity         (`expert`)

Decisions that every stage keeps are SmolVLA's, see `models.smolvla.policy`. What differs: prefixes
hold no state, so the head of a π0 can be run again on newer joints; masks are numbers that float16
has, too.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from .backbone import FusionBackbone
from .config import Pi0Config
from .expert import ActionHead
from .vision import VisionEncoder

STAGES = ("vision_encoder", "fusion_backbone", "action_head")


class Pi0(nn.Module):
    """The three stages and the token table [vocabulary, text width] (a plain tensor, any dtype)."""

    #: How rotary angles are rounded, see `omni_ros.policy.rope`.
    rope = "frequency"

    def __init__(self, config: Pi0Config, slots: int) -> None:
        super().__init__()
        config.check()
        self.config = config
        self.slots = slots
        #: Where the state comes in.
        self.state_in = "prompt" if config.adaptive else "suffix"
        #: Tokens that follow the prefix.
        self.suffix = config.suffix
        self.vision_encoder = VisionEncoder(config)
        self.fusion_backbone = FusionBackbone(config, slots)
        self.action_head = ActionHead(config)
        self.token_table = torch.zeros(0, config.text.width)

    @property
    def layout(self):
        return self.fusion_backbone.layout

    def look_up(self, tokens: np.ndarray) -> torch.Tensor:
        """Return rows of the token table, float32 [len(tokens), width]."""
        return self.token_table[torch.from_numpy(np.asarray(tokens, dtype=np.int64))].float()
