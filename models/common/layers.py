# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Building blocks written so that XNNPACK takes a whole network as one delegate.

Everything works on one sequence without a batch dimension: [length, width], or
[heads, length, head width] inside attention. The rules, learnt by measurement:

- A norm's mean is a Linear with one row of 1/width: `mean` and `native_layer_norm` are not
  delegated. The row is a buffer, not an `nn.Linear`, so that quantisation leaves it alone.
- `gelu` is delegated as the erf form whatever `approximate` says (off by up to 5e-4), so the tanh
  form is spelled out.
- Matrix products are 3-D `bmm`, grouped queries are folded into rows; slices instead of chunk or
  split; no expand.
- Masks are finite numbers that are added: a row with nothing to attend to then gets even weights,
  as in the reference, and never NaN, which would poison keys and values that are masked later
  (0 x NaN).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

# Added to a score, this rounds to itself whatever the score: the same as replacing the score.
MASKED = torch.finfo(torch.float32).min
# The same for networks that are also run in float16: far below any score, yet the sum of both is
# finite there (the largest is 65504), and its softmax is exactly 0 beside a score that counts.
MASKED_HALF = -30000.0


def row_of_means(width: int) -> torch.Tensor:
    """Return the weight of a Linear that takes the mean, [1, width]."""
    return torch.full((1, width), 1.0 / width, device="cpu")


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension: [length, width] to the same."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.register_buffer("mean_row", row_of_means(width), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean_square = F.linear(x * x, self.mean_row)
        return x * torch.rsqrt(mean_square + self.eps) * self.weight


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last dimension."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("mean_row", row_of_means(width), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - F.linear(x, self.mean_row)
        variance = F.linear(centred * centred, self.mean_row)
        return centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """GELU in its tanh form: 0.5 x (1 + tanh(u)) is x sigmoid(2u), which takes fewer passes."""
    # 2 sqrt(2 / pi) (x + 0.044715 x^3)
    return x * torch.sigmoid(x * (x * x * 0.07135481282553516 + 1.5957691216057308))


class GatedMLP(nn.Module):
    """down(silu(gate(x)) * up(x)), without biases: [length, width] to the same. `gelu` instead of
    silu is its tanh form.
    """

    def __init__(self, width: int, hidden: int, *, gelu: bool = False) -> None:
        super().__init__()
        self.gelu = gelu
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = self.gate(x)
        gate = gelu_tanh(gate) if self.gelu else gate * torch.sigmoid(gate)
        return self.down(gate * self.up(x))


def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """[length, heads * head width] to [heads, length, head width]."""
    return x.view(x.shape[0], heads, x.shape[1] // heads).permute(1, 0, 2)


def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """[heads, length, head width] to [length, heads * head width]."""
    return x.permute(1, 0, 2).reshape(x.shape[1], x.shape[0] * x.shape[2])


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary positions: the first half of each head is paired with the second.

    x: [heads, length, head width]; cos, sin: [length, head width / 2].
    """
    half = x.shape[2] // 2
    first, second = x[:, :, :half], x[:, :, half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=2)


def attend(
    queries: torch.Tensor,
    keys_transposed: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Softmax attention; consecutive query heads share a key head.

    queries [heads, length, head width], keys_transposed [key heads, head width, keys],
    values [key heads, keys, head width], mask added to the scores, broadcastable to
    [heads, length, keys]. Returns [heads, length, head width].
    """
    heads, length, width = queries.shape
    key_heads, _, keys = keys_transposed.shape
    folded = (queries * width**-0.5).reshape(key_heads, heads // key_heads * length, width)
    scores = torch.bmm(folded, keys_transposed).view(heads, length, keys)
    if mask is not None:
        scores = scores + mask
    weights = torch.softmax(scores, dim=-1).view(key_heads, heads // key_heads * length, keys)
    return torch.bmm(weights, values).view(heads, length, width)


def additive(allowed: torch.Tensor, masked: float = MASKED) -> torch.Tensor:
    """1 where attention is allowed and 0 where not, to 0 and `masked`."""
    return (1.0 - allowed) * masked
