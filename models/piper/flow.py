# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The flow: what the text encoder draws, made into what the decoder takes.

Each of four couplings moves one half of the channels by what a network of convolutions makes of the
other half. A frame of the result depends on REACH frames to either side and no further, so any
stretch can be made by itself, exactly.
"""

from __future__ import annotations

import torch
from torch import nn

from .config import PiperSizes


def reach(sizes: PiperSizes) -> int:
    """Frames that a frame of the result depends on, to either side."""
    return len(sizes.flows) * sizes.flow_layers * (sizes.flow_kernel // 2)


class Coupling(nn.Module):
    """What one half is moved by, [1, half, length] to the same."""

    def __init__(self, sizes: PiperSizes) -> None:
        super().__init__()
        self.width = width = sizes.width
        layers, half = sizes.flow_layers, width // 2
        self.pre = nn.Conv1d(half, width, 1)
        self.tanh = nn.ModuleList(self._inner(sizes) for _ in range(layers))
        self.gate = nn.ModuleList(self._inner(sizes) for _ in range(layers))
        self.go_on = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers - 1))
        self.skip = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))
        self.post = nn.Conv1d(width, half, 1)

    @staticmethod
    def _inner(sizes: PiperSizes) -> nn.Conv1d:
        kernel = sizes.flow_kernel
        return nn.Conv1d(sizes.width, sizes.width, kernel, padding=kernel // 2)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.pre(x) * mask
        total = None
        for i, (tanh, gate, skip) in enumerate(zip(self.tanh, self.gate, self.skip, strict=True)):
            made = torch.tanh(tanh(x)) * torch.sigmoid(gate(x))
            total = skip(made) if total is None else total + skip(made)
            if i < len(self.go_on):
                x = (x + self.go_on[i](made)) * mask
        return self.post(total * mask) * mask


class Flow(nn.Module):
    """One program: a window of frames. forward(drawn [1, width, frames], mask [1, 1, frames]).

    mask: 0 behind the last frame of an utterance; what is there must be finite and is not used.
    """

    def __init__(self, sizes: PiperSizes) -> None:
        super().__init__()
        self.half = sizes.width // 2
        self.couplings = nn.ModuleList(Coupling(sizes) for _ in sizes.flows)

    def forward(self, drawn: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        drawn = drawn * mask
        first, second = drawn[:, : self.half], drawn[:, self.half :]
        # The channels are turned round between couplings. Here the weights are (see `load`), so
        # that the halves take turns where they are.
        for i, coupling in enumerate(self.couplings):
            if i % 2 == 0:
                first = (first - coupling(second, mask)) * mask
            else:
                second = (second - coupling(first, mask)) * mask
        return torch.cat((first, second), dim=1)
