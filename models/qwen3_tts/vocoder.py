# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The decoder of the 12 Hz tokenizer, n frames at a time, with all it remembers as inputs.

Every layer looks back only: convolutions over a few samples before, attention over the 71 frames
before. Those are the state: handed in, and handed out as they are after the n frames. A whole
decode, one in chunks of any sizes, and a window (a start from zeros) are the same function.

The look-up of the codes is the host's: features [n, 2 * row], the row of the first codebook beside
the sum of the rows of the others.
"""

from __future__ import annotations

import torch
from torch import nn

from ..common.layers import GatedMLP, LayerNorm, RMSNorm, merge_heads, rotate, split_heads
from .config import Layers, VocoderConfig


class CausalConv(nn.Module):
    """A convolution that looks back: [1, in, n] and its tail to [1, out, n] and the next tail."""

    def __init__(
        self, given: int, made: int, size: int, dilation: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        self.tail = (given, (size - 1) * dilation)
        self.conv = nn.Conv1d(given, made, size, dilation=dilation, groups=groups)

    def forward(self, x: torch.Tensor, tail: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        joined = torch.cat((tail, x), dim=2)
        return self.conv(joined), joined[:, :, x.shape[2]:]


class Upsample(nn.Module):
    """A transposed convolution twice as long as its stride: each sample reaches into the next."""

    def __init__(self, given: int, made: int, stride: int) -> None:
        super().__init__()
        self.stride, self.tail = stride, (given, 1)
        self.conv = nn.ConvTranspose1d(given, made, 2 * stride, stride=stride)

    def forward(self, x: torch.Tensor, tail: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        n = x.shape[2]
        joined = torch.cat((tail, x), dim=2)
        return self.conv(joined)[:, :, self.stride:self.stride * (n + 1)], joined[:, :, n:]


class Snake(nn.Module):
    """x + sin(a x)^2 / b by channel, with a and 1 / b already out of their logarithms."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.ones(1, channels, 1))
        self.inverse_b = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wave = torch.sin(x * self.a)
        return x + self.inverse_b * (wave * wave)


class ConvNeXt(nn.Module):
    """A convolution over time by channel, an MLP over channels, added to what was given."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = CausalConv(width, width, 7, groups=width)
        self.tail = self.mix.tail
        self.norm = LayerNorm(width, 1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.activation = nn.GELU()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor, tail: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mixed, tail = self.mix(x, tail)
        rows = mixed.reshape(mixed.shape[1], mixed.shape[2]).permute(1, 0)
        rows = self.gamma * self.down(self.activation(self.up(self.norm(rows))))
        return x + rows.permute(1, 0).reshape(x.shape), tail


class Residual(nn.Module):
    """Two convolutions behind Snakes, added to what was given."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.snake_1, self.snake_2 = Snake(channels), Snake(channels)
        self.conv_1 = CausalConv(channels, channels, 7, dilation)
        self.tail = self.conv_1.tail
        self.conv_2 = nn.Conv1d(channels, channels, 1)

    def forward(self, x: torch.Tensor, tail: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mixed, tail = self.conv_1(self.snake_1(x), tail)
        return x + self.conv_2(self.snake_2(mixed)), tail


class WindowLayer(nn.Module):
    """A layer whose attention sees the frames before through the keys and values handed in."""

    def __init__(self, sizes: Layers) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = sizes.heads, sizes.kv_heads, sizes.head_dim
        inner, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
        self.attention_norm = RMSNorm(sizes.width, sizes.eps)
        self.q = nn.Linear(sizes.width, inner, bias=sizes.bias)
        self.k = nn.Linear(sizes.width, keys, bias=sizes.bias)
        self.v = nn.Linear(sizes.width, keys, bias=sizes.bias)
        self.out = nn.Linear(inner, sizes.width, bias=sizes.bias)
        self.attention_scale = nn.Parameter(torch.ones(sizes.width))
        self.mlp_norm = RMSNorm(sizes.width, sizes.eps)
        self.mlp = GatedMLP(sizes.width, sizes.mlp)
        self.mlp_scale = nn.Parameter(torch.ones(sizes.width))

    def forward(self, x, cos, sin, mask, keys, values):
        """x [n, width], mask [n, past + n], keys, values [kv heads, past, head dim]."""
        n, normed = x.shape[0], self.attention_norm(x)
        q = rotate(split_heads(self.q(normed), self.heads), cos, sin) * self.head_dim**-0.5
        k = rotate(split_heads(self.k(normed), self.kv_heads), cos, sin)
        keys = torch.cat((keys, k), dim=1)
        values = torch.cat((values, split_heads(self.v(normed), self.kv_heads)), dim=1)
        rows, length = self.heads // self.kv_heads * n, keys.shape[1]
        scores = torch.bmm(q.reshape(self.kv_heads, rows, self.head_dim), keys.permute(0, 2, 1))
        scores = scores.view(self.heads, n, length) + mask
        weights = torch.softmax(scores, dim=-1).view(self.kv_heads, rows, length)
        mixed = torch.bmm(weights, values).view(self.heads, n, self.head_dim)
        x = x + self.attention_scale * self.out(merge_heads(mixed))
        x = x + self.mlp_scale * self.mlp(self.mlp_norm(x))
        return x, keys[:, n:], values[:, n:]


class ConvDecoder(nn.Module):
    """From latent frames [1, latent, n] to samples [1, 1, n * frame]; the part that costs most."""

    def __init__(self, config: VocoderConfig) -> None:
        super().__init__()
        channels = config.channels
        parts: list[nn.Module] = []
        for ratio in config.ratios:
            parts += [nn.ConvTranspose1d(config.latent, config.latent, ratio, stride=ratio),
                      ConvNeXt(config.latent)]
        parts.append(CausalConv(config.latent, channels, 7))
        for rate in config.rates:
            parts += [Snake(channels), Upsample(channels, channels // 2, rate)]
            channels //= 2
            parts += [Residual(channels, dilation) for dilation in (1, 3, 9)]
        parts += [Snake(channels), CausalConv(channels, 1, 7)]
        self.parts = nn.ModuleList(parts)

    @property
    def tails(self) -> list[tuple[int, int]]:
        """Channels and length of each tail, in order."""
        return [part.tail for part in self.parts if hasattr(part, "tail")]

    def forward(self, x: torch.Tensor, *tails: torch.Tensor) -> tuple[torch.Tensor, ...]:
        left, made = list(tails), []
        for part in self.parts:
            if hasattr(part, "tail"):
                x, tail = part(x, left.pop(0))
                made.append(tail)
            else:
                x = part(x)
        return (torch.clamp(x, -1.0, 1.0), *made)


class Vocoder(nn.Module):
    """features [n, 2 * row], cos, sin [n, head_dim / 2], mask [n, past + n], then the states: keys
    and values of each layer, and the tails. Returns pcm [n * frame] and the states after it.
    """

    def __init__(self, config: VocoderConfig) -> None:
        super().__init__()
        self.config = config
        sizes, row = config.stack, config.codebook_dim
        self.first = nn.Linear(row, config.projected, bias=False)
        self.rest = nn.Linear(row, config.projected, bias=False)
        self.pre_conv = CausalConv(config.projected, config.latent, 3)
        self.into = nn.Linear(config.latent, sizes.width)
        self.layers = nn.ModuleList(WindowLayer(sizes) for _ in range(sizes.layers))
        self.norm = RMSNorm(sizes.width, sizes.eps)
        self.out_of = nn.Linear(sizes.width, config.latent)
        self.decoder = ConvDecoder(config)

    @property
    def tails(self) -> list[tuple[int, int]]:
        """Channels and length of each tail, in order."""
        return [self.pre_conv.tail, *self.decoder.tails]

    def zero_states(self) -> list[torch.Tensor]:
        """Return the states at the start of an utterance."""
        sizes, past = self.config.stack, self.config.window - 1
        shape = (sizes.kv_heads, past, sizes.head_dim)
        keys = [torch.zeros(shape) for _ in range(2 * sizes.layers)]
        return [*keys, *(torch.zeros(1, *tail) for tail in self.tails)]

    def forward(self, features, cos, sin, mask, *states):
        row, n = self.config.codebook_dim, features.shape[0]
        hidden = self.first(features[:, :row]) + self.rest(features[:, row:])
        count = 2 * self.config.stack.layers
        tails = states[count:]
        hidden = hidden.permute(1, 0).reshape(1, self.config.projected, n)
        hidden, tail = self.pre_conv(hidden, tails[0])
        hidden = self.into(hidden.reshape(self.config.latent, n).permute(1, 0))
        made = []
        for index, layer in enumerate(self.layers):
            hidden, keys, values = layer(
                hidden, cos, sin, mask, states[2 * index], states[2 * index + 1])
            made += [keys, values]
        hidden = self.out_of(self.norm(hidden))
        hidden = hidden.permute(1, 0).reshape(1, self.config.latent, n)
        pcm, *rest = self.decoder(hidden, *tails[1:])
        return (pcm.reshape(n * self.config.frame_samples), *made, tail, *rest)
