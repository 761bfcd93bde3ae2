# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The other codes of a frame, one after the other: the first is the talker's.

A frame is one pass over the talker's hidden state and the first code, then one pass for every
further code but the last; each is followed by a head of its own and a draw on the host.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omni_ros.programs import Program, zeros

from .rows import MASKED, Angles
from .sampling import Draw, draw


class CodePredictor:
    """Bound once; a frame allocates next to nothing."""

    def __init__(self, load: Callable[[str], Program], embeddings: np.ndarray, *, groups: int,
                 layers: int, head_dim: int, rope_base: float) -> None:
        """
        :param load: gives a program by name.
        :param embeddings: of the codes behind the first, float32 [groups - 1, codes, width].
        """
        self._embeddings, self._groups = embeddings, groups
        self._first, self._step = load("predictor_first"), load("predictor_step")
        self._heads = [load(f"predictor_head_{group}") for group in range(groups - 1)]
        shapes = {spec.name: spec.shape for spec in self._step.inputs}
        heads, size, width = shapes["keys_0"]
        self._keys = zeros((layers, heads, size, width), "float32")
        self._values = zeros((layers, heads, size, width), "float32")
        # One mask a position, each bound in turn, would be as quick: a copy of `size` floats.
        self._mask = zeros((1, size), "float32")
        for layer in range(layers):
            self._step.bind(f"keys_{layer}", self._keys[layer])
            self._step.bind(f"values_{layer}", self._values[layer])
        self._step.bind("mask", self._mask)
        self._angles = Angles(groups, head_dim, rope_base)
        self._x, self._cos, self._sin = self._bind_inputs(self._step)
        self._x2, cos2, sin2 = self._bind_inputs(self._first)
        cos2[...], sin2[...] = self._angles.cos[:2], self._angles.sin[:2]
        for index, head in enumerate(self._heads):
            head.bind("hidden", (self._step if index else self._first).output("hidden"))
        self._programs = (self._first, self._step, *self._heads)
        self.codes = np.zeros(groups, np.int64)
        self.total = np.zeros(embeddings.shape[2], np.float32)

    def frame(self, hidden: np.ndarray, code: int, row: np.ndarray, rule: Draw,
              source: np.random.Generator | None) -> np.ndarray:
        """Return the frame's codes, int64 [groups]; overwritten by the next call.

        `total` is then the sum of the embeddings of all of them: what the talker takes next.

        :param hidden: the talker's, [width]. :param code, row: the first code and its embedding.
        """
        self.codes[0] = code
        self.total[...] = row
        self._x2[0], self._x2[1] = hidden, row
        self._first.run()
        self._keys[:, :, :2] = self._first.output("keys_new")
        self._values[:, :, :2] = self._first.output("values_new")
        self._mask[0, :2], self._mask[0, 2:] = 0.0, MASKED
        for group in range(1, self._groups):
            head = self._heads[group - 1]
            head.run()
            code = draw(head.output("logits")[0], rule, source)
            self.codes[group] = code
            row = self._embeddings[group - 1, code]
            self.total += row
            if group + 1 < self._groups:
                self._pass(row, group + 1)
        return self.codes

    def _pass(self, row: np.ndarray, position: int) -> None:
        self._x[0] = row
        self._cos[0], self._sin[0] = self._angles.cos[position], self._angles.sin[position]
        self._step.run()
        self._keys[:, :, position] = self._step.output("keys_new")
        self._values[:, :, position] = self._step.output("values_new")
        self._mask[0, position] = 0.0

    @staticmethod
    def _bind_inputs(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shapes = {spec.name: spec.shape for spec in program.inputs}
        made = tuple(zeros(shapes[name], "float32") for name in ("x", "cos", "sin"))
        for name, array in zip(("x", "cos", "sin"), made, strict=True):
            program.bind(name, array)
        return made

    def close(self) -> None:
        for program in self._programs:
            program.close()
