# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Stage 2, `fusion_backbone`: image tokens, prompt and state to keys and values for the actions.

Inputs (float32, no batch dimension; P is the prefix length of `prefix.PrefixLayout`):
    images      n x [image tokens, width]   as the vision encoder returns them; anything finite in
                                            a slot that is masked
    language    [prompt length, width]      rows of the token table, UNSCALED
    state       [1, max state]              normalised, zero-padded
    valid       [P]                         1 for tokens that count, 0 for padding
    cos, sin    [P, head width / 2]         `prefix.prefix_rope(valid)`
Outputs, per layer: keys [key heads, head width, P], values [key heads, P, head width]. Keys are
transposed, as the action head's product reads them. A self-attention layer's are the backbone's own
(keys after rotary positions); a cross-attention layer's have passed the expert's projections, which
do not depend on the actions and so are done here, once.

The host looks the prompt's rows up: an embedding inside would be the one operator that is not
delegated and would keep the whole table resident, while a memory-mapped file costs the few pages
that are read.

The last layer computes keys and values only: nothing reads its output, nor the final norm.
"""

from __future__ import annotations

import torch
from torch import nn

from ..common.layers import additive, merge_heads, split_heads
from ..common.transformer import TextLayer
from .config import SmolVLAConfig
from .prefix import END_MARKS, START_MARKS, PrefixLayout


class CrossProjection(nn.Module):
    """The expert's keys and values of a cross-attention layer, from the backbone's."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.k = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, width, bias=False)


class FusionBackbone(nn.Module):
    """Prefix, text layers, per-layer keys and values."""

    def __init__(self, config: SmolVLAConfig, slots: int) -> None:
        super().__init__()
        self.config = config
        self.layout = PrefixLayout(
            slots, config.image_tokens, config.language, config.special_tokens
        )
        width, layers = config.text.width, config.layers
        self.scale = float(width) ** 0.5
        self.state_proj = nn.Linear(config.max_state, width)
        if config.special_tokens:  # unscaled, as in the reference
            self.start_marks = nn.Parameter(torch.zeros(START_MARKS, width))
            self.end_marks = nn.Parameter(torch.zeros(END_MARKS, width))
        self.layers = nn.ModuleList(
            TextLayer(config.text, last=index == layers - 1) for index in range(layers)
        )
        self.cross = nn.ModuleDict({
            str(index): CrossProjection(config.kv_width)
            for index in range(layers) if not config.self_attention[index]
        })
        # Everyone sees images and prompt; only the state sees the state.
        structure = torch.ones(self.layout.length, self.layout.length, device="cpu")
        structure[:-1, -1] = 0.0
        self.register_buffer("structure", structure, persistent=False)

    def embed(
        self, images: list[torch.Tensor], language: torch.Tensor, state: torch.Tensor
    ) -> torch.Tensor:
        """Return the prefix, [P, width]."""
        parts = []
        for image in images:
            if self.config.special_tokens:
                parts += [self.start_marks, image * self.scale, self.end_marks]
            else:
                parts.append(image * self.scale)
        parts += [language * self.scale, self.state_proj(state)]
        return torch.cat(parts, dim=0)

    def mask(self, valid: torch.Tensor) -> torch.Tensor:
        """Return what is added to the scores, [1, P, P]; padding neither looks nor is looked at."""
        length = self.layout.length
        allowed = self.structure * valid.view(length, 1) * valid.view(1, length)
        return additive(allowed).view(1, length, length)

    def prefill(
        self, x: torch.Tensor, valid: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return the backbone's own keys and values per layer, [key heads, P, head width]."""
        mask = self.mask(valid)
        cache = []
        for layer in self.layers:
            x, keys, values = layer(x, mask, cos, sin)
            cache.append((keys, values))
        return cache

    def project(self, cache: list[tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
        """Return [keys 0, values 0, keys 1, ...] as the action head takes them."""
        outputs = []
        for index, (keys, values) in enumerate(cache):
            if str(index) in self.cross:
                heads = self.config.text.kv_heads
                cross = self.cross[str(index)]
                keys = split_heads(cross.k(merge_heads(keys)), heads)
                values = split_heads(cross.v(merge_heads(values)), heads)
            outputs += [keys.permute(0, 2, 1), values]
        return outputs

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        *images, language, state, valid, cos, sin = inputs
        x = self.embed(images, language, state)
        return tuple(self.project(self.prefill(x, valid, cos, sin)))
