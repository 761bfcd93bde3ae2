# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The talker: one position, or a few at once, behind a cache of T earlier ones."""

from __future__ import annotations

import torch
from torch import nn

from .config import PredictorConfig, TalkerConfig
from .layers import Stack, causal_mask


class Talker(nn.Module):
    """From embeddings [n, width] to the last hidden state and logits of code 0."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.config = config
        self.stack = Stack(config.stack)
        self.head = nn.Linear(config.stack.width, config.codes, bias=False)


class TalkerStep(nn.Module):
    """One position: x [1, width], cos, sin [1, head_dim / 2], mask [1, T], caches.

    Returns hidden [1, width], logits [1, codes], keys_new, values_new [layers, kv heads, head dim].
    """

    def __init__(self, talker: Talker) -> None:
        super().__init__()
        self.talker = talker

    def forward(self, x, cos, sin, mask, *caches):
        hidden, keys, values = self.talker.stack(x, cos, sin, mask, caches)
        shape = (keys.shape[0], keys.shape[1], keys.shape[3])
        return hidden, self.talker.head(hidden), keys.reshape(shape), values.reshape(shape)


class TalkerPrefill(nn.Module):
    """n positions at once; what is new sees itself causally. Returns [layers, kv heads, n, ...]."""

    def __init__(self, talker: Talker, length: int) -> None:
        super().__init__()
        self.talker = talker
        self.register_buffer("causal", causal_mask(length), persistent=False)

    def forward(self, x, cos, sin, mask, *caches):
        hidden, keys, values = self.talker.stack(x, cos, sin, mask, caches, self.causal)
        return hidden, self.talker.head(hidden), keys, values


class Predictor(nn.Module):
    """The code predictor's layers, and its heads by group."""

    def __init__(self, config: PredictorConfig, given: int) -> None:
        """:param given: the talker's width."""
        super().__init__()
        self.config = config
        width = config.stack.width
        self.project = nn.Linear(given, width) if given != width else None
        self.stack = Stack(config.stack)
        self.heads = nn.ModuleList(
            nn.Linear(width, config.codes, bias=False) for _ in range(config.groups - 1)
        )


class PredictorFirst(nn.Module):
    """The talker's hidden state and the embedding of code 0 together: x [2, talker's width].

    Returns hidden [1, width] of the second, keys_new, values_new [layers, kv heads, 2, head dim].
    """

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.predictor = predictor
        self.register_buffer("causal", causal_mask(2), persistent=False)

    def forward(self, x, cos, sin):
        inner = self.predictor
        x = x if inner.project is None else inner.project(x)
        hidden, keys, values = inner.stack(x, cos, sin, None, (), self.causal)
        return hidden[1:], keys, values


class PredictorStep(nn.Module):
    """The embedding of one more code: x [1, talker's width], mask [1, groups], caches."""

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.predictor = predictor

    def forward(self, x, cos, sin, mask, *caches):
        inner = self.predictor
        x = x if inner.project is None else inner.project(x)
        hidden, keys, values = inner.stack(x, cos, sin, mask, caches)
        shape = (keys.shape[0], keys.shape[1], keys.shape[3])
        return hidden, keys.reshape(shape), values.reshape(shape)


class PredictorHead(nn.Module):
    """Logits of one group: hidden [1, width] to [1, codes]."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.head = head

    def forward(self, hidden):
        return self.head(hidden)
