# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The policy in PyTorch, for closed-loop evaluation: batched, while it trains and after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from ..smolvla.load import build, load_checkpoint
from .batched import Batched
from .batches import Statistics, to_pixels
from .words import Sentences


class EagerPolicy:
    """A ``closed_loop.Policy`` over the batched network."""

    def __init__(self, network: Batched, statistics: Statistics, sentences: Sentences,
                 seed: int = 0) -> None:
        self.network, self.statistics, self.sentences = network, statistics, sentences
        self._random = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def __call__(self, images: np.ndarray, joints: np.ndarray, texts: list[str]) -> np.ndarray:
        network, s = self.network, self.statistics
        n, cameras = images.shape[:2]
        tokens = network.images(to_pixels(images).flatten(0, 1)).view(
            n, -1, network.config.text.width
        )
        ids, mask = self.sentences.batch([self.sentences.ids(text) for text in texts])
        state = torch.from_numpy(((joints - s.state_mean) / s.state_std).astype(np.float32))
        prefix = network.prefix(tokens, torch.ones(n, cameras, dtype=torch.bool),
                                torch.from_numpy(ids), torch.from_numpy(mask), state)
        noise = torch.randn(n, network.config.chunk, network.config.max_action,
                            generator=self._random)
        return network.sample(prefix, noise).numpy() * s.action_std + s.action_mean


def from_checkpoint(folder: Path, seed: int = 0) -> EagerPolicy:
    """Read a checkpoint, strictly."""
    checkpoint = load_checkpoint(folder)
    model = build(checkpoint)
    state, action = checkpoint.state_statistics.values, checkpoint.action_statistics.values
    statistics = Statistics(state["mean"], state["std"], action["mean"], action["std"])
    tokens = torch.nn.Parameter(checkpoint.token_table.float(), requires_grad=False)
    sentences = Sentences(checkpoint.tokenizer.folder / "tokenizer.json",
                          checkpoint.config.language)
    return EagerPolicy(Batched(model, tokens), statistics, sentences, seed)
