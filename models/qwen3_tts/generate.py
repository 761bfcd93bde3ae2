# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The networks at work in PyTorch: what the programs are measured against."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..common.layers import MASKED
from .layers import rope
from .talker import Predictor, PredictorFirst, PredictorStep, Talker, TalkerPrefill, TalkerStep
from .vocoder import Vocoder


class EagerTalker:
    """A talker with its cache: embeddings in, last hidden state and logits out."""

    def __init__(self, talker: Talker, length: int) -> None:
        self.sizes = talker.config.stack
        self.talker, self.step = talker, TalkerStep(talker)
        shape = (2 * self.sizes.layers, self.sizes.kv_heads, length, self.sizes.head_dim)
        self.caches = torch.zeros(shape)
        self.mask = torch.full((1, length), MASKED)
        self.position = 0

    @torch.inference_mode()
    def __call__(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x [n, width]: one position, or several at once. Returns hidden, logits of the last."""
        n, start = x.shape[0], self.position
        run = self.step if n == 1 else TalkerPrefill(self.talker, n)
        cos, sin = rope(torch.arange(start, start + n), self.sizes.head_dim, self.sizes.rope_base)
        hidden, logits, keys, values = run(x, cos, sin, self.mask, *self.caches)
        for index in range(self.sizes.layers):
            for offset, new in ((0, keys), (1, values)):
                self.caches[2 * index + offset][:, start:start + n] = new[index].reshape(
                    self.sizes.kv_heads, n, self.sizes.head_dim)
        self.mask[0, start:start + n] = 0.0
        self.position += n
        return hidden[-1], logits[-1]


def largest(logits: torch.Tensor) -> int:
    """Return the likeliest code of logits [n]."""
    return int(logits.argmax())


class EagerPredictor:
    """Codes 1 to the last of a frame."""

    def __init__(self, predictor: Predictor, tables: torch.Tensor,
                 choose: Callable[[torch.Tensor], int] = largest) -> None:
        """:param tables: [groups - 1, codes, talker's width]. :param choose: a code of its logits."""
        self._choose = choose
        self.predictor, self.tables, self.sizes = predictor, tables, predictor.config.stack
        self.first, self.step = PredictorFirst(predictor), PredictorStep(predictor)
        groups = predictor.config.groups
        self.rope = rope(torch.arange(groups), self.sizes.head_dim, self.sizes.rope_base)

    @torch.inference_mode()
    def __call__(self, hidden: torch.Tensor, embedded: torch.Tensor) -> list[int]:
        """hidden, embedded [talker's width]: of the talker, and of code 0."""
        groups, sizes = self.predictor.config.groups, self.sizes
        caches = torch.zeros(2 * sizes.layers, sizes.kv_heads, groups, sizes.head_dim)
        mask = torch.full((1, groups), MASKED)
        cos, sin = self.rope
        last, keys, values = self.first(torch.stack((hidden, embedded)), cos[:2], sin[:2])
        caches[0::2, :, :2], caches[1::2, :, :2] = keys, values
        mask[0, :2] = 0.0
        codes = [self._choose(self.predictor.heads[0](last))]
        for position in range(2, groups):
            x = self.tables[position - 2, codes[-1]].float()[None]
            at = slice(position, position + 1)
            last, keys, values = self.step(x, cos[at], sin[at], mask, *caches)
            caches[0::2, :, position], caches[1::2, :, position] = keys, values
            mask[0, position] = 0.0
            codes.append(self._choose(self.predictor.heads[position - 1](last)))
        return codes


class EagerVocoder:
    """A vocoder with its states."""

    def __init__(self, vocoder: Vocoder, codebooks: torch.Tensor) -> None:
        self.vocoder, self.codebooks = vocoder, codebooks
        self.reset()

    def reset(self) -> None:
        """Begin a new utterance."""
        self.states, self.position = self.vocoder.zero_states(), 0

    @torch.inference_mode()
    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        """codes int64 [groups, n] to the next n frames' samples [n * frame]."""
        config, n = self.vocoder.config, codes.shape[1]
        cos, sin = rope(torch.arange(self.position, self.position + n), config.stack.head_dim,
                        config.stack.rope_base)
        mask = window_mask(n, self.position, config.window)
        pcm, *self.states = self.vocoder(
            features(self.codebooks, codes), cos, sin, mask, *self.states)
        self.position += n
        return pcm


def features(codebooks: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """Return what the vocoder takes for codes [groups, n]: [n, 2 * row]."""
    rows = [codebooks[group, codes[group]] for group in range(codes.shape[0])]
    rest = rows[1]
    for row in rows[2:]:
        rest = rest + row
    return torch.cat((rows[0], rest), dim=1)


def window_mask(n: int, position: int, window: int) -> torch.Tensor:
    """Return what frame position + i may see, [n, window - 1 + n] to add to scores."""
    frames = torch.arange(position - window + 1, position + n)[None]
    own = torch.arange(position, position + n)[:, None]
    allowed = (frames >= 0) & (frames <= own) & (own - frames < window)
    return torch.where(allowed, 0.0, MASKED)
