# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Layers of the decoders: the backbone's, whose keys and values are kept, and the expert's."""

from __future__ import annotations

import torch
from torch import nn

from .config import TextConfig
from .layers import GatedMLP, RMSNorm, attend, merge_heads, rotate, split_heads


class TextLayer(nn.Module):
    """Llama-like layer (with `gelu` Gemma-like); `last` ones stop at keys and values."""

    def __init__(self, text: TextConfig, *, last: bool, gelu: bool = False) -> None:
        super().__init__()
        self.kv_heads, self.heads, self.last = text.kv_heads, text.heads, last
        self.attention_norm = RMSNorm(text.width, text.eps)
        self.k = nn.Linear(text.width, text.kv_width, bias=False)
        self.v = nn.Linear(text.width, text.kv_width, bias=False)
        if not last:
            self.q = nn.Linear(text.width, text.heads * text.head_dim, bias=False)
            self.o = nn.Linear(text.heads * text.head_dim, text.width, bias=False)
            self.mlp_norm = RMSNorm(text.width, text.eps)
            self.mlp = GatedMLP(text.width, text.mlp, gelu=gelu)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the layer's output, keys [key heads, P, head width] and values, the same shape."""
        normed = self.attention_norm(x)
        keys = rotate(split_heads(self.k(normed), self.kv_heads), cos, sin)
        values = split_heads(self.v(normed), self.kv_heads)
        if not self.last:
            queries = rotate(split_heads(self.q(normed), self.heads), cos, sin)
            x = x + self.o(merge_heads(attend(queries, keys.permute(0, 2, 1), values, mask)))
            x = x + self.mlp(self.mlp_norm(x))
        return x, keys, values


class ExpertAttention(nn.Module):
    """Attention and MLP of an expert's layer, whose norms are a subclass's.

    Heads are the backbone's. Without `self_attention` there are no keys of its own (the backbone
    made them).
    """

    def __init__(
        self, text: TextConfig, width: int, mlp: int, *, self_attention: bool = True,
        gelu: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads = text.heads, text.kv_heads
        self.self_attention = self_attention
        self.attention_norm = self.norm_of(width, text.eps)
        self.q = nn.Linear(width, text.heads * text.head_dim, bias=False)
        if self_attention:
            self.k = nn.Linear(width, text.kv_width, bias=False)
            self.v = nn.Linear(width, text.kv_width, bias=False)
        self.o = nn.Linear(text.heads * text.head_dim, width, bias=False)
        self.mlp_norm = self.norm_of(width, text.eps)
        self.mlp = GatedMLP(width, mlp, gelu=gelu)

    def norm_of(self, width: int, eps: float) -> nn.Module:
        raise NotImplementedError

    def attention(
        self, normed: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor,
        cos: torch.Tensor, sin: torch.Tensor,
    ) -> torch.Tensor:
        """Return what is added to the layer's input, [length, width].

        keys [key heads, head width, prefix], values [key heads, prefix, head width].
        """
        queries = rotate(split_heads(self.q(normed), self.heads), cos, sin)
        if self.self_attention:
            own_keys = rotate(split_heads(self.k(normed), self.kv_heads), cos, sin)
            keys = torch.cat((keys, own_keys.permute(0, 2, 1)), dim=2)
            values = torch.cat((values, split_heads(self.v(normed), self.kv_heads)), dim=1)
        return self.o(merge_heads(attend(queries, keys, values, mask)))


class ExpertLayer(ExpertAttention):
    """One layer of an expert with plain norms."""

    def norm_of(self, width: int, eps: float) -> RMSNorm:
        return RMSNorm(width, eps)

    def forward(
        self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor,
        cos: torch.Tensor, sin: torch.Tensor,
    ) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), keys, values, mask, cos, sin)
        return x + self.mlp(self.mlp_norm(x))
