# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Decoder layers with the keys and values of earlier positions as inputs.

The cache is never put together with what is new: scores against both are computed apart and made
one softmax, so a step reads the cache once and copies none of it.
"""

from __future__ import annotations

import torch
from torch import nn

from ..common.layers import MASKED, RMSNorm, merge_heads, rotate, split_heads
from .config import Layers


class PackedMLP(nn.Module):
    """down(silu(gate(x)) * up(x)) with gate and up as one product."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = self.gate_up(x)
        gate, up = both[:, :self.hidden], both[:, self.hidden:]
        return self.down(gate * torch.sigmoid(gate) * up)


class CachedAttention(nn.Module):
    """Grouped attention with normalised queries and keys; queries, keys, values as one product."""

    def __init__(self, sizes: Layers) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = sizes.heads, sizes.kv_heads, sizes.head_dim
        queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
        self.splits = (queries, queries + keys)
        self.qkv = nn.Linear(sizes.width, queries + 2 * keys, bias=sizes.bias)
        self.q_norm = RMSNorm(sizes.head_dim, sizes.eps)
        self.k_norm = RMSNorm(sizes.head_dim, sizes.eps)
        self.out = nn.Linear(queries, sizes.width, bias=sizes.bias)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor,
        cache: tuple[torch.Tensor, torch.Tensor] | None, mask: torch.Tensor | None,
        causal: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x [n, width]; cache: keys and values [kv heads, T, head dim]; mask [1, T] added to the
        scores of the cache, causal [n, n] to those of what is new. Returns [n, width] and the new
        keys and values, [kv heads, n, head dim].
        """
        first, second = self.splits
        joined = self.qkv(x)
        q = self.q_norm(split_heads(joined[:, :first], self.heads))
        k = self.k_norm(split_heads(joined[:, first:second], self.kv_heads))
        v = split_heads(joined[:, second:], self.kv_heads)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        n = x.shape[0]
        rows = self.heads // self.kv_heads * n
        folded = (q * self.head_dim**-0.5).reshape(self.kv_heads, rows, self.head_dim)
        scores = torch.bmm(folded, k.permute(0, 2, 1))
        if causal is not None:
            scores = (scores.view(self.heads, n, n) + causal).view(self.kv_heads, rows, n)
        if cache is None:
            mixed = torch.bmm(torch.softmax(scores, dim=-1), v)
        else:
            keys, values = cache
            past = torch.bmm(folded, keys.permute(0, 2, 1)) + mask
            weights = torch.softmax(torch.cat((past, scores), dim=2), dim=-1)
            length = keys.shape[1]
            mixed = torch.bmm(weights[:, :, :length], values) + torch.bmm(weights[:, :, length:], v)
        mixed = mixed.view(self.heads, n, self.head_dim)
        return self.out(merge_heads(mixed)), k, v


class DecoderLayer(nn.Module):
    """One layer: attention and MLP, each behind a norm and added to what it was given."""

    def __init__(self, sizes: Layers) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(sizes.width, sizes.eps)
        self.attention = CachedAttention(sizes)
        self.mlp_norm = RMSNorm(sizes.width, sizes.eps)
        self.mlp = PackedMLP(sizes.width, sizes.mlp)

    def forward(self, x, cos, sin, cache, mask, causal):
        mixed, k, v = self.attention(self.attention_norm(x), cos, sin, cache, mask, causal)
        x = x + mixed
        return x + self.mlp(self.mlp_norm(x)), k, v


class Stack(nn.Module):
    """Layers and the norm behind them."""

    def __init__(self, sizes: Layers) -> None:
        super().__init__()
        self.sizes = sizes
        self.layers = nn.ModuleList(DecoderLayer(sizes) for _ in range(sizes.layers))
        self.norm = RMSNorm(sizes.width, sizes.eps)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor | None,
        caches: tuple[torch.Tensor, ...], causal: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """caches: keys and values of layer 0, of layer 1, ...; none for a start without a past.

        Returns [n, width] and all new keys and values, each [layers, kv heads, n, head dim].
        """
        keys, values = [], []
        for index, layer in enumerate(self.layers):
            cache = (caches[2 * index], caches[2 * index + 1]) if caches else None
            x, k, v = layer(x, cos, sin, cache, mask, causal)
            keys.append(k)
            values.append(v)
        return self.norm(x), joined(keys), joined(values)


def joined(parts: list[torch.Tensor]) -> torch.Tensor:
    """Stack tensors, in steps of four: more in one is not delegated."""
    shape = parts[0].shape
    parts = [part.reshape(1, *shape) for part in parts]
    while len(parts) > 1:
        parts = [torch.cat(parts[i:i + 4]) if len(parts[i:i + 4]) > 1 else parts[i]
                 for i in range(0, len(parts), 4)]
    return parts[0]


def causal_mask(length: int) -> torch.Tensor:
    """[length, length] to add to scores: nothing sees what comes after it."""
    return torch.triu(torch.full((length, length), MASKED), diagonal=1)


def rope(positions: torch.Tensor, head_dim: int, base: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine [n, head_dim / 2] of positions [n], in float32 as the reference's."""
    frequencies = 1.0 / base ** (torch.arange(0, head_dim, 2).float() / head_dim)
    angles = positions.float()[:, None] * frequencies[None]
    return angles.cos(), angles.sin()
