# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The text encoder: symbols to the mean and spread of the flow's input, and to durations.

A sequence shorter than the program is followed by places whose mask is 0. They change nothing of
what comes before them: attention gives them weight 0, convolutions see 0 there.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ..common.layers import LayerNorm, additive, merge_heads, split_heads
from .config import PiperSizes
from .convolve import convolve
from .durations import Durations

EPS = 1e-5


class RelativeAttention(nn.Module):
    """Self-attention that also learnt how far apart two places are, up to `window` either way."""

    def __init__(self, sizes: PiperSizes, length: int) -> None:
        super().__init__()
        self.heads, self.length = sizes.heads, length
        self.queries = nn.Linear(sizes.width, sizes.width)
        self.keys = nn.Linear(sizes.width, sizes.width)
        self.values = nn.Linear(sizes.width, sizes.width)
        self.out = nn.Linear(sizes.width, sizes.width)
        head = sizes.width // sizes.heads
        # Rows for distances -(length - 1) to length - 1; beyond the window they are 0.
        self.register_buffer("near_keys", torch.zeros(sizes.heads, head, 2 * length - 1))
        self.register_buffer("near_values", torch.zeros(sizes.heads, 2 * length - 1, head))

    def set_near(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Take the learnt rows, [1, 2 window + 1, head width] each."""
        rows, middle = keys.shape[1], self.length - 1
        window = rows // 2
        for distance in range(-window, window + 1):
            place = middle + distance
            if 0 <= place < 2 * self.length - 1:
                self.near_keys[:, :, place] = keys[0, window + distance]
                self.near_values[:, place, :] = values[0, window + distance]

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """x: [length, width]; mask: added to the scores, [1, 1, length]."""
        heads, length = self.heads, self.length
        queries = split_heads(self.queries(x), heads)
        queries = queries * queries.shape[2] ** -0.5
        keys = split_heads(self.keys(x), heads).transpose(1, 2)
        scores = torch.bmm(queries, keys) + self._absolute(torch.bmm(queries, self.near_keys))
        weights = torch.softmax(scores + mask, dim=-1)
        mixed = torch.bmm(weights, split_heads(self.values(x), heads))
        mixed = mixed + torch.bmm(self._relative(weights), self.near_values)
        return self.out(merge_heads(mixed))

    def _absolute(self, x: torch.Tensor) -> torch.Tensor:
        """[heads, i, distance] to [heads, i, j]: rows of 2 length - 1 read 1 further apart."""
        heads, length = self.heads, self.length
        x = F.pad(x, (0, 1)).reshape(heads, 1, length * 2 * length)
        x = F.pad(x, (0, length - 1)).reshape(heads, length + 1, 2 * length - 1)
        return x[:, :length, length - 1:]

    def _relative(self, x: torch.Tensor) -> torch.Tensor:
        """[heads, i, j] to [heads, i, distance]."""
        heads, length = self.heads, self.length
        x = F.pad(x, (0, length - 1)).reshape(heads, 1, length * (2 * length - 1))
        x = F.pad(x, (length, 0)).reshape(heads, length, 2 * length)
        return x[:, :, 1:]


class Layer(nn.Module):
    def __init__(self, sizes: PiperSizes, length: int) -> None:
        super().__init__()
        padding = sizes.kernel // 2
        self.attention = RelativeAttention(sizes, length)
        self.norm_1 = LayerNorm(sizes.width, EPS)
        self.conv_1 = nn.Conv1d(sizes.width, sizes.hidden, sizes.kernel, padding=padding)
        self.conv_2 = nn.Conv1d(sizes.hidden, sizes.width, sizes.kernel, padding=padding)
        self.norm_2 = LayerNorm(sizes.width, EPS)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        x = self.norm_1(x + self.attention(x, scores))
        y = torch.relu(convolve(self.conv_1, x * mask))
        return self.norm_2(x + convolve(self.conv_2, y * mask) * mask)


class Text(nn.Module):
    """One program: symbols in, all that is drawn from out.

    forward(symbols, mask, noise):
        symbols: [length, width], rows of the symbol table.
        mask: [length, 1], 1 where a symbol is.
        noise: [length, 2], what the durations are drawn from.
        Returns mean [length, width], spread [length, width] (the standard deviation, not its
        logarithm), and durations [length, 1] in frames, not rounded, 0 beyond the mask.
    """

    def __init__(self, sizes: PiperSizes, length: int) -> None:
        super().__init__()
        self.sizes, self.length = sizes, length
        self.layers = nn.ModuleList(Layer(sizes, length) for _ in range(sizes.layers))
        self.mean = nn.Linear(sizes.width, sizes.width)
        self.log_spread = nn.Linear(sizes.width, sizes.width)
        self.durations = Durations(sizes)

    def forward(
        self, symbols: torch.Tensor, mask: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        x = symbols * mask
        scores = additive(mask).reshape(1, 1, self.length)
        for layer in self.layers:
            x = layer(x, mask, scores)
        x = x * mask
        durations = torch.exp(self.durations(x, mask, noise)) * mask
        return self.mean(x) * mask, torch.exp(self.log_spread(x) * mask), durations
