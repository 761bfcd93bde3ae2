# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The same network over many observations at once, for training and evaluation.

`models.smolvla` is written for export: one observation, no batch. Here its parameters are applied
in batches, with PyTorch's fused attention and norms; what comes out is the same to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from omni_ros.policy.flow import step_times
from omni_ros.policy.rope import rope_tables

from ..common.layers import RMSNorm, gelu_tanh
from ..smolvla.policy import SmolVLA


def layer_norm(norm, x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, norm.weight.shape, norm.weight, norm.bias, norm.eps)


def rms_norm(norm: RMSNorm, x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + norm.eps) * norm.weight


def gated(mlp, x: torch.Tensor) -> torch.Tensor:
    return mlp.down(F.silu(mlp.gate(x)) * mlp.up(x))


def heads_of(x: torch.Tensor, heads: int) -> torch.Tensor:
    """[n, length, heads * width] to [n, heads, length, width]."""
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def merged(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).flatten(2)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x [n, heads, length, width]; cos, sin [n or 1, 1, length, width / 2]."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def attended(queries, keys, values, mask) -> torch.Tensor:
    """Grouped queries; mask bool, True where attention is allowed."""
    group = queries.shape[1] // keys.shape[1]
    keys, values = keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1)
    return merged(F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask))


@dataclass
class Prefix:
    """What the action head needs of n observations, and hidden states for auxiliary losses."""

    keys: list[torch.Tensor]  # per layer, [n, key heads, length, width]
    values: list[torch.Tensor]
    valid: torch.Tensor  # bool [n, length]
    halfway: torch.Tensor  # image tokens after half of the layers, [n, image tokens, width]
    state: torch.Tensor  # the state's token before the last layer, [n, width]


class Batched:
    """:param model: its parameters are used as they are at each call."""

    def __init__(self, model: SmolVLA, tokens: torch.nn.Parameter) -> None:
        self.model, self.tokens, self.config = model, tokens, model.config
        head_dim = self.config.text.head_dim
        cos, sin = rope_tables(np.arange(model.layout.length + self.config.chunk), head_dim)
        self._cos, self._sin = torch.from_numpy(cos), torch.from_numpy(sin)
        half = self.config.expert_width // 2
        share = torch.linspace(0.0, 1.0, half, dtype=torch.float64)
        ratio = self.config.max_period / self.config.min_period
        self._frequency = 2 * torch.pi / (self.config.min_period * ratio**share)
        self._causal = torch.ones(self.config.chunk, self.config.chunk, dtype=torch.bool).tril()

    def images(self, pixels: torch.Tensor) -> torch.Tensor:
        """[n, 3, height, width] in [-1, 1] to image tokens [n, tokens, text width]."""
        encoder = self.model.vision_encoder
        n, side, rows, columns = len(pixels), encoder.patch, encoder.rows, encoder.columns
        x = pixels.view(n, 3, rows, side, columns, side).permute(0, 2, 4, 1, 3, 5)
        x = encoder.patch_embedding(x.reshape(n, rows * columns, -1)) + encoder.position_table
        for layer in encoder.layers:
            normed = layer_norm(layer.attention_norm, x)
            queries, keys, values = (
                heads_of(part(normed), layer.heads) for part in (layer.q, layer.k, layer.v)
            )
            x = x + layer.o(merged(F.scaled_dot_product_attention(queries, keys, values)))
            x = x + layer.down(gelu_tanh(layer.up(layer_norm(layer.mlp_norm, x))))
        x, s = layer_norm(encoder.norm, x), encoder.shuffle
        x = x.view(n, rows // s, s, columns // s, -1).transpose(2, 3)
        return encoder.connector(x.reshape(n, (rows // s) * (columns // s), -1))

    def prefix(
        self, images: torch.Tensor, present: torch.Tensor, ids: torch.Tensor,
        mask: torch.Tensor, state: torch.Tensor,
    ) -> Prefix:
        """Run the backbone.

        :param images: [n, cameras * tokens, width]. :param present: bool [n, cameras].
        :param ids: [n, longest]; :param mask: bool, which of them count. :param state: [n, state].
        """
        backbone, config = self.model.fusion_backbone, self.config
        x = torch.cat((
            images * backbone.scale, self.tokens[ids] * backbone.scale,
            backbone.state_proj(state)[:, None],
        ), dim=1)
        count = images.shape[1]
        valid = torch.cat((
            present.repeat_interleave(config.image_tokens, 1), mask,
            torch.ones(len(x), 1, dtype=torch.bool),
        ), dim=1)
        positions = (valid.long().cumsum(1) - 1).clamp(min=0)
        cos, sin = self._cos[positions][:, None], self._sin[positions][:, None]
        allowed = valid[:, None, None, :].expand(-1, 1, x.shape[1], -1).clone()
        allowed[:, :, :-1, -1] = False  # only the state sees the state
        keys_of, values_of, halfway = [], [], x
        for index, layer in enumerate(backbone.layers):
            normed = rms_norm(layer.attention_norm, x)
            keys = rotated(heads_of(layer.k(normed), layer.kv_heads), cos, sin)
            values = heads_of(layer.v(normed), layer.kv_heads)
            if not layer.last:
                queries = rotated(heads_of(layer.q(normed), layer.heads), cos, sin)
                x = x + layer.o(attended(queries, keys, values, allowed))
                x = x + gated(layer.mlp, rms_norm(layer.mlp_norm, x))
            if index == config.layers // 2 - 1:
                halfway = x[:, :count]
            if str(index) in backbone.cross:
                cross = backbone.cross[str(index)]
                keys = heads_of(cross.k(merged(keys)), layer.kv_heads)
                values = heads_of(cross.v(merged(values)), layer.kv_heads)
            keys_of.append(keys)
            values_of.append(values)
        return Prefix(keys_of, values_of, valid, halfway, x[:, -1])

    def velocity(self, prefix: Prefix, noisy: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Return the flow's velocity [n * draws, chunk, action] of noisy actions of that shape.

        :param time: [n * draws]; the draws of an observation follow one another.
        """
        head, config = self.model.action_head, self.config
        draws = len(noisy) // len(prefix.valid)
        angle = time.double()[:, None] * self._frequency
        embedded = torch.cat((angle.sin(), angle.cos()), dim=1).float()
        mixed = head.mix_action(head.action_in(noisy)) + head.mix_time(embedded)[:, None]
        x = head.mix_out(F.silu(mixed))
        valid = prefix.valid.repeat_interleave(draws, 0)
        positions = valid.sum(1, keepdim=True) + torch.arange(config.chunk)
        cos, sin = self._cos[positions][:, None], self._sin[positions][:, None]
        cross_cos, cross_sin = (t[: config.chunk][None, None] for t in (self._cos, self._sin))
        cross_mask = valid[:, None, None, :].expand(-1, 1, config.chunk, -1)
        self_mask = torch.cat(
            (cross_mask, self._causal[None, None].expand(len(x), 1, -1, -1)), dim=3
        )
        for index, layer in enumerate(head.layers):
            keys = prefix.keys[index].repeat_interleave(draws, 0)
            values = prefix.values[index].repeat_interleave(draws, 0)
            normed = rms_norm(layer.attention_norm, x)
            queries = heads_of(layer.q(normed), layer.heads)
            if layer.self_attention:
                own = rotated(heads_of(layer.k(normed), layer.kv_heads), cos, sin)
                keys = torch.cat((keys, own), dim=2)
                values = torch.cat((values, heads_of(layer.v(normed), layer.kv_heads)), dim=2)
                seen = attended(rotated(queries, cos, sin), keys, values, self_mask)
            else:
                seen = attended(rotated(queries, cross_cos, cross_sin), keys, values, cross_mask)
            x = x + layer.o(seen)
            x = x + gated(layer.mlp, rms_norm(layer.mlp_norm, x))
        return head.action_out(rms_norm(head.norm, x))

    @torch.no_grad()
    def sample(
        self, prefix: Prefix, noise: torch.Tensor, step: Callable[[int], None] | None = None
    ) -> torch.Tensor:
        """Return normalised actions [n, chunk, action] from noise of that shape."""
        actions = noise
        for t in step_times(self.config.steps).tolist():
            velocity = self.velocity(prefix, actions, torch.full((len(noise),), t))
            actions = actions - velocity / self.config.steps
        return actions
