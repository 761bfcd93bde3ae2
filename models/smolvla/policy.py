# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""SmolVLA as three stages that become three static programs.

    vision_encoder   pixels of one camera                      -> image tokens        (`vision`)
    fusion_backbone  image tokens, prompt, state               -> keys and values     (`backbone`)
    action_head      noisy actions, time, keys and values      -> velocity            (`expert`)

`sample_actions` is the host's part in plain PyTorch: run the first once a camera, the second once
an observation, the third once a step. It is what the exported programs are compared with.

Decisions that every stage keeps: no batch dimension; fixed shapes, everything variable is a mask
(`valid`); rotary tables and time embeddings are computed by the host and come in as inputs; rows of
the token table are looked up by the host, unscaled; keys leave the backbone transposed.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ..common.sampling import Trace, sample_actions
from .backbone import FusionBackbone
from .config import SmolVLAConfig
from .expert import ActionHead
from .vision import VisionEncoder

__all__ = ["STAGES", "SmolVLA", "Trace", "sample_actions"]

STAGES = ("vision_encoder", "fusion_backbone", "action_head")


class SmolVLA(nn.Module):
    """The three stages and the token table [vocabulary, text width] (a plain tensor, any dtype)."""

    #: How rotary angles are rounded, see `omni_ros.policy.rope`; where the state comes in.
    rope, state_in = "timescale", "prefix"

    def __init__(
        self, config: SmolVLAConfig, slots: int, *, shifted_vision_positions: bool = False
    ) -> None:
        super().__init__()
        config.check()
        self.config = config
        self.slots = slots
        #: Tokens that follow the prefix.
        self.suffix = config.chunk
        self.vision_encoder = VisionEncoder(config, shifted_positions=shifted_vision_positions)
        self.fusion_backbone = FusionBackbone(config, slots)
        self.action_head = ActionHead(config)
        self.token_table = torch.zeros(0, config.text.width)

    @property
    def layout(self):
        return self.fusion_backbone.layout

    def look_up(self, tokens: np.ndarray) -> torch.Tensor:
        """Return rows of the token table, float32 [len(tokens), width]."""
        return self.token_table[torch.from_numpy(np.asarray(tokens, dtype=np.int64))].float()
