# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Stage 2, `fusion_backbone`: image tokens and prompt to keys and values for the actions.

Inputs (float32, no batch dimension; P is the prefix length of `PrefixLayout`):
    images      n x [image tokens, width]   as the vision encoder returns them; anything finite in
                                            a slot that is masked
    language    [prompt length, width]      rows of the token table, UNSCALED
    valid       [P]                         1 for tokens that count, 0 for padding
    cos, sin    [P, head width / 2]         `prefix.prefix_rope(valid)`: positions depend on data
Outputs, per layer: keys [key heads, head width, P] after rotary positions, transposed as the action
head's product reads them, and values [key heads, P, head width].

There is no state in it, so that the head can be run again on another state. The last layer computes
keys and values only: nothing reads its output, nor the final norm.
"""

from __future__ import annotations

import torch
from torch import nn

from omni_ros.policy.prefix import PrefixLayout

from ..common.layers import MASKED_HALF, additive
from ..common.transformer import TextLayer
from .config import Pi0Config


class FusionBackbone(nn.Module):
    """Prefix, Gemma layers, per-layer keys and values."""

    def __init__(self, config: Pi0Config, slots: int) -> None:
        super().__init__()
        self.config = config
        self.layout = PrefixLayout(
            slots, config.image_tokens, config.language, special_tokens=False, state=False
        )
        self.scale = float(config.text.width) ** 0.5
        last = config.layers - 1
        self.layers = nn.ModuleList(
            TextLayer(config.text, last=index == last, gelu=True) for index in range(config.layers)
        )

    def embed(self, images: list[torch.Tensor], language: torch.Tensor) -> torch.Tensor:
        """Return the prefix, [P, width]."""
        return torch.cat((*images, language * self.scale), dim=0)

    def mask(self, valid: torch.Tensor) -> torch.Tensor:
        """Return what is added to the scores, [1, P, P]; padding neither looks nor is looked at."""
        length = self.layout.length
        return additive(
            valid.view(1, length, 1) * valid.view(1, 1, length), MASKED_HALF
        )

    def prefill(
        self, x: torch.Tensor, valid: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return keys and values per layer, [key heads, P, head width]."""
        mask = self.mask(valid)
        cache = []
        for layer in self.layers:
            x, keys, values = layer(x, mask, cos, sin)
            cache.append((keys, values))
        return cache

    def project(self, cache: list[tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
        """Return [keys 0, values 0, keys 1, ...] as the action head takes them."""
        return [tensor for keys, values in cache for tensor in (keys.permute(0, 2, 1), values)]

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        *images, language, valid, cos, sin = inputs
        return tuple(self.project(self.prefill(self.embed(images, language), valid, cos, sin)))
