# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A convolution among layers that have the length first."""

from __future__ import annotations

import torch
from torch import nn


def convolve(conv: nn.Conv1d, x: torch.Tensor) -> torch.Tensor:
    """Apply a convolution that keeps the length: [length, in] to [length, out].

    By `view`: XNNPACK takes no squeeze.
    """
    length = x.shape[0]
    y = conv(x.transpose(0, 1).reshape(1, x.shape[1], length))
    return y.view(conv.out_channels, length).transpose(0, 1)
