# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Stage 3, `action_head`: one velocity of the flow, by the action expert.

Inputs (float32, no batch dimension; P is the prefix length, S the suffix's: see `Pi0Config.suffix`):
    noisy       [chunk, max action]     actions at this time
    time        [1, expert width]       `policy.flow.time_embedding` of this time, from the host
    state       [1, max state]          π0 only: normalised, zero-padded
    valid       [P]                     the same as the backbone's
    cos, sin    [S, head width / 2]     positions of the suffix, which follows the valid prefix
    keys, values per layer              the backbone's outputs, in order, unchanged
Output: velocity [chunk, max action]. The host steps: actions += dt * velocity, dt = -1 / steps.

All layers attend to the prefix and to the suffix. π0's state sees the prefix and itself, actions see
everything; π0.5 has no state here, and its norms are set by time (adaRMS).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ..common.layers import MASKED_HALF, RMSNorm, additive, row_of_means
from ..common.transformer import ExpertAttention, ExpertLayer
from .config import Pi0Config


class AdaptiveNorm(nn.Module):
    """x / rms(x) * (1 + scale) + shift, all three set by a condition [1, width].

    One Linear in the checkpoint, [scale, shift, gate]; `gated` ones also return the gate [1, width],
    by which the sublayer's output is multiplied.
    """

    def __init__(self, width: int, eps: float, *, gated: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.scale = nn.Linear(width, width)
        self.shift = nn.Linear(width, width)
        self.gate = nn.Linear(width, width) if gated else None
        self.register_buffer("mean_row", row_of_means(width), persistent=False)

    def forward(self, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        normed = x * torch.rsqrt(F.linear(x * x, self.mean_row) + self.eps)
        return normed * (self.scale(condition) + 1.0) + self.shift(condition)


class AdaptiveLayer(ExpertAttention):
    """One layer of π0.5's expert."""

    def norm_of(self, width: int, eps: float) -> AdaptiveNorm:
        return AdaptiveNorm(width, eps)

    def forward(
        self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor,
        cos: torch.Tensor, sin: torch.Tensor, condition: torch.Tensor,
    ) -> torch.Tensor:
        norm = self.attention_norm
        added = self.attention(norm(x, condition), keys, values, mask, cos, sin)
        x = x + added * norm.gate(condition)
        norm = self.mlp_norm
        return x + self.mlp(norm(x, condition)) * norm.gate(condition)


class ActionHead(nn.Module):
    """Actions, time and (π0) the state to a velocity."""

    def __init__(self, config: Pi0Config) -> None:
        super().__init__()
        width, text = config.expert_width, config.text
        self.adaptive, self.suffix = config.adaptive, config.suffix
        self.action_in = nn.Linear(config.max_action, width)
        if config.adaptive:
            self.time_in = nn.Linear(width, width)
            self.time_out = nn.Linear(width, width)
        else:
            self.state_proj = nn.Linear(config.max_state, width)
            # One Linear over [action, time] in the checkpoint. Time is one row for all actions.
            self.mix_action = nn.Linear(width, width, bias=False)
            self.mix_time = nn.Linear(width, width)
            self.mix_out = nn.Linear(width, width)
        layer = AdaptiveLayer if config.adaptive else ExpertLayer
        self.layers = nn.ModuleList(
            layer(text, width, config.expert_mlp, gelu=True) for _ in range(config.layers)
        )
        self.norm = AdaptiveNorm(width, text.eps, gated=False) if config.adaptive else (
            RMSNorm(width, text.eps))
        self.action_out = nn.Linear(width, config.max_action)
        structure = torch.ones(self.suffix, self.suffix, device="cpu")
        if not config.adaptive:
            structure[0, 1:] = 0.0
        self.register_buffer("structure", structure, persistent=False)
        self.register_buffer("each", torch.ones(self.suffix, 1, device="cpu"), persistent=False)

    def condition(self, time: torch.Tensor) -> torch.Tensor:
        """Return what sets π0.5's norms, [1, width]."""
        hidden = self.time_in(time)
        hidden = self.time_out(hidden * torch.sigmoid(hidden))
        return hidden * torch.sigmoid(hidden)

    def embed(self, noisy: torch.Tensor, time: torch.Tensor, *state: torch.Tensor) -> torch.Tensor:
        """Return the expert's input, [S, expert width]."""
        actions = self.action_in(noisy)
        if self.adaptive:
            return actions
        mixed = self.mix_action(actions) + self.mix_time(time)
        actions = self.mix_out(mixed * torch.sigmoid(mixed))
        return torch.cat((self.state_proj(*state), actions), dim=0)

    def mask(self, valid: torch.Tensor) -> torch.Tensor:
        """Return what is added to the scores, [1, S, P + S]."""
        seen = self.each * valid.view(1, valid.shape[0])
        allowed = torch.cat((seen, self.structure), dim=1)
        return additive(allowed, MASKED_HALF).view(1, self.suffix, valid.shape[0] + self.suffix)

    def forward(self, noisy: torch.Tensor, time: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        state = () if self.adaptive else rest[:1]
        valid, cos, sin, *keys_values = rest[len(state):]
        mask = self.mask(valid)
        condition = (self.condition(time),) if self.adaptive else ()
        x = self.embed(noisy, time, *state)
        for index, layer in enumerate(self.layers):
            keys, values = keys_values[2 * index], keys_values[2 * index + 1]
            x = layer(x, keys, values, mask, cos, sin, *condition)
        x = self.norm(x, *condition)
        return self.action_out(x if self.adaptive else x[1:])
