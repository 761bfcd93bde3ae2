# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How long each symbol lasts: noise through three spline flows, told what the encoder found.

Only the way from noise to durations is here. The spline's choice of a bin is written with sums and
products, as XNNPACK takes neither comparisons nor look-ups.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from ..common.layers import LayerNorm
from .config import PiperSizes
from .convolve import convolve

EPS = 1e-5
LEAST = 1e-3  # of a bin's width, its height and a slope
STEEP = 1e30


class Stack(nn.Module):
    """Separable convolutions whose reach grows threefold with each layer."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.near = nn.ModuleList(
            nn.Conv1d(width, width, 3, groups=width, dilation=3**i, padding=3**i)
            for i in range(layers)
        )
        self.across = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norms_1 = nn.ModuleList(LayerNorm(width, EPS) for _ in range(layers))
        self.norms_2 = nn.ModuleList(LayerNorm(width, EPS) for _ in range(layers))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for near, across, norm_1, norm_2 in zip(
            self.near, self.across, self.norms_1, self.norms_2, strict=True
        ):
            y = convolve(near, x * mask)
            y = F.gelu(norm_1(y))
            x = x + F.gelu(norm_2(across(y)))
        return x * mask


class SplineFlow(nn.Module):
    """Bend one of two numbers by a spline that the other one and the encoder choose."""

    def __init__(self, sizes: PiperSizes) -> None:
        super().__init__()
        self.bins, self.tail = sizes.bins, sizes.tail
        self.scale = 1 / math.sqrt(sizes.width)
        self.pre = nn.Linear(1, sizes.width)
        self.stack = Stack(sizes.width, sizes.duration_layers)
        self.widths = nn.Linear(sizes.width, sizes.bins)
        self.heights = nn.Linear(sizes.width, sizes.bins)
        self.slopes = nn.Linear(sizes.width, sizes.bins - 1)
        # cumulative sums, [bins + 1, bins], as the weight of a Linear
        sums = torch.tril(torch.ones(sizes.bins + 1, sizes.bins), -1)
        self.register_buffer("sums", sums)
        self.register_buffer("ones", torch.ones(1, sizes.bins))

    def forward(
        self, kept: torch.Tensor, bent: torch.Tensor, told: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """kept, bent, mask: [length, 1]; told: [length, width]. Returns `bent`, bent."""
        x = self.stack(self.pre(kept) + told, mask)
        return self.spline(
            bent, self.widths(x) * mask * self.scale, self.heights(x) * mask * self.scale,
            self.slopes(x) * mask,
        )

    def spline(
        self, y: torch.Tensor, widths: torch.Tensor, heights: torch.Tensor, slopes: torch.Tensor
    ) -> torch.Tensor:
        """Apply the inverse rational quadratic spline; outside of its box nothing is bent."""
        inside = y.clamp(-self.tail, self.tail)
        lefts, widths = self._edges(widths)
        floors, heights = self._edges(heights)
        # softplus, so that neither end overflows
        slopes = LEAST + torch.relu(slopes) + torch.log(torch.exp(-torch.abs(slopes)) + 1.0)
        # Factors are floats: an integer would be converted by an operator of its own.
        ones = slopes[:, :1] * 0.0 + 1.0
        slopes = torch.cat((ones, slopes, ones), dim=1)
        # 1 in the bin that holds y: above its floor and not above the next one's
        above = ((inside - floors[:, 1:self.bins]) * STEEP).clamp(0.0, 1.0)
        above = torch.cat((ones, above, ones * 0.0), dim=1)
        chosen = above[:, : self.bins] - above[:, 1:]

        def pick(values: torch.Tensor) -> torch.Tensor:
            return F.linear(values * chosen, self.ones)

        left, width = pick(lefts[:, : self.bins]), pick(widths)
        floor, height = pick(floors[:, : self.bins]), pick(heights)
        slope, next_slope = pick(slopes[:, : self.bins]), pick(slopes[:, 1:])
        delta, up = height / width, inside - floor
        bend = up * (slope + next_slope - 2.0 * delta)
        a = bend + height * (delta - slope)
        b = height * slope - bend
        c = delta * up * -1.0
        root = torch.relu(b * b - 4.0 * a * c)
        place = 2.0 * c / (b * -1.0 - torch.sqrt(root))
        return place * width + left + (y - inside)

    def _edges(self, raw: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the bins' edges [length, bins + 1] and sizes [length, bins]."""
        sizes = LEAST + (1.0 - LEAST * self.bins) * torch.softmax(raw, dim=-1)
        edges = F.linear(sizes, self.sums) * (2.0 * self.tail) - self.tail
        return edges, edges[:, 1:] - edges[:, :-1]


class Durations(nn.Module):
    def __init__(self, sizes: PiperSizes) -> None:
        super().__init__()
        self.pre = nn.Linear(sizes.width, sizes.width)
        self.stack = Stack(sizes.width, sizes.duration_layers)
        self.proj = nn.Linear(sizes.width, sizes.width)
        self.flows = nn.ModuleList(SplineFlow(sizes) for _ in sizes.duration_flows)
        self.register_buffer("shift", torch.zeros(1, 1))
        self.register_buffer("scale", torch.ones(1, 1))

    def forward(self, x: torch.Tensor, mask: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Return the logarithm of durations in frames, [length, 1]."""
        told = self.proj(self.stack(self.pre(x), mask)) * mask
        kept, bent = noise[:, 1:] * mask, noise[:, :1] * mask
        for flow in self.flows:
            kept, bent = flow(kept, bent, told, mask) * mask, kept
        # After an odd number of flows the last one bent is the one whose turn it is to be kept.
        return (kept - self.shift) * self.scale * mask
