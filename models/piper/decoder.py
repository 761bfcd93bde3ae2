# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The decoder, a HiFi-GAN: 256 samples of each frame, in windows.

A sample depends on its own frame and CONTEXT frames to either side. A window that begins where the
utterance begins, or ends where it ends, needs no context there: convolutions see 0 beyond it, as
they do in the whole.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .config import PiperSizes

#: Measured: 10 frames leave 1e-6, 11 and more nothing but rounding.
CONTEXT = 11
SLOPE, LAST_SLOPE = 0.1, 0.01


class ResBlock(nn.Module):
    def __init__(self, width: int, kernel: int, dilations: tuple[int, int]) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv1d(width, width, kernel, dilation=d, padding=d * (kernel // 2))
            for d in dilations
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv in self.convs:
            x = conv(F.leaky_relu(x, SLOPE)) + x
        return x


class Decoder(nn.Module):
    """forward(frames [1, width, n]): samples [1, 1, n * 256] in -1..1."""

    def __init__(self, sizes: PiperSizes, weights: dict[str, torch.Tensor]) -> None:
        """:param weights: for the channels of each step and the kernels, which vary by quality."""
        super().__init__()
        self.conv_pre = like(weights["conv_pre.weight"])
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        kinds = len(sizes.resblock_dilations)
        for i, rate in enumerate(sizes.rates):
            width_in, width_out, kernel = weights[f"ups.{i}.weight"].shape
            self.ups.append(nn.ConvTranspose1d(
                width_in, width_out, kernel, rate, padding=(kernel - rate) // 2
            ))
            for j, dilations in enumerate(sizes.resblock_dilations):
                kernel = weights[f"resblocks.{i * kinds + j}.convs.0.weight"].shape[2]
                self.resblocks.append(ResBlock(width_out, kernel, dilations))
        self.conv_post = like(weights["conv_post.weight"], bias=False)
        self.kinds = kinds

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        x = self.conv_pre(frames)
        for i, up in enumerate(self.ups):
            x = up(F.leaky_relu(x, SLOPE))
            blocks = self.resblocks[i * self.kinds : (i + 1) * self.kinds]
            total = blocks[0](x)
            for block in blocks[1:]:
                total = total + block(x)
            x = total * (1 / self.kinds)
        return torch.tanh(self.conv_post(F.leaky_relu(x, LAST_SLOPE)))


def like(weight: torch.Tensor, bias: bool = True) -> nn.Conv1d:
    """Return a convolution whose weight has the shape of `weight` and that keeps the length."""
    width_out, width_in, kernel = weight.shape
    return nn.Conv1d(width_in, width_out, kernel, padding=kernel // 2, bias=bias)
