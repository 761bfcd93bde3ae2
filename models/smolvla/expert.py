# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Stage 3, `action_head`: one velocity of the flow, by the action expert.

Inputs (float32, no batch dimension; P is the prefix length):
    noisy       [chunk, max action]     actions at this time
    time        [1, expert width]       `policy.flow.time_embedding` of this time, from the host (float64
                                        sines have no place in the program)
    valid       [P]                     the same as the backbone's
    cos, sin    [chunk, head width / 2] `prefix.action_rope(valid)`: actions follow the valid prefix
    keys, values per layer              the backbone's outputs, in order, unchanged
Output: velocity [chunk, max action]. The host steps: actions += dt * velocity, dt = -1 / steps.

Layers alternate. In self-attention an action sees the prefix and the actions up to itself; in
cross-attention the prefix alone, and positions start at 0.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from omni_ros.policy.rope import rope_tables

from ..common.layers import RMSNorm, additive
from ..common.transformer import ExpertLayer
from .config import SmolVLAConfig


class ActionHead(nn.Module):
    """Actions and time to a velocity."""

    def __init__(self, config: SmolVLAConfig) -> None:
        super().__init__()
        width, chunk = config.expert_width, config.chunk
        self.chunk = chunk
        self.action_in = nn.Linear(config.max_action, width)
        # One Linear over [action, time] in the checkpoint. Time is one row for all actions.
        self.mix_action = nn.Linear(width, width, bias=False)
        self.mix_time = nn.Linear(width, width)
        self.mix_out = nn.Linear(width, width)
        self.layers = nn.ModuleList(
            ExpertLayer(config.text, width, config.expert_mlp, self_attention=flag)
            for flag in config.self_attention
        )
        self.norm = RMSNorm(width, config.text.eps)
        self.action_out = nn.Linear(width, config.max_action)
        cos, sin = rope_tables(np.arange(chunk), config.text.head_dim)
        for name, constant in (
            ("causal", torch.ones(chunk, chunk, device="cpu").tril()),
            ("each_action", torch.ones(chunk, 1, device="cpu")),
            ("cross_cos", torch.from_numpy(cos)),
            ("cross_sin", torch.from_numpy(sin)),
        ):
            self.register_buffer(name, constant, persistent=False)

    def embed(self, noisy: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Return the expert's input, [chunk, expert width]."""
        mixed = self.mix_action(self.action_in(noisy)) + self.mix_time(time)
        return self.mix_out(mixed * torch.sigmoid(mixed))

    def forward(
        self,
        noisy: torch.Tensor,
        time: torch.Tensor,
        valid: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        *keys_values: torch.Tensor,
    ) -> torch.Tensor:
        prefix = valid.shape[0]
        seen = self.each_action * valid.view(1, prefix)
        cross_mask = additive(valid.view(1, 1, prefix))
        self_mask = additive(torch.cat((seen, self.causal), dim=1))
        self_mask = self_mask.view(1, self.chunk, prefix + self.chunk)
        x = self.embed(noisy, time)
        for index, layer in enumerate(self.layers):
            keys, values = keys_values[2 * index], keys_values[2 * index + 1]
            if layer.self_attention:
                x = layer(x, keys, values, self_mask, cos, sin)
            else:
                x = layer(x, keys, values, cross_mask, self.cross_cos, self.cross_sin)
        return self.action_out(self.norm(x))
