# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a talker is, and the one that runs as ExecuTorch programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from omni_ros.programs import Program, zeros

from .errors import ContextFull
from .rows import MASKED, Angles


class Talker(Protocol):
    """Takes one position's embedding after another.

    :ivar name: how it runs. :ivar limit: positions that it has. :ivar position: those in use.
    """

    name: str
    limit: int
    position: int

    def start(self) -> None:
        """Forget everything: the next position is the first."""

    def feed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take positions, float32 [positions, width].

        :return: the last one's hidden state [width] and logits [codes], overwritten by the next
            call. :raises ContextFull: there is no room for them; nothing was taken.
        """

    def close(self) -> None: ...


class _Context:
    """The programs of one cache size, with the cache."""

    def __init__(self, step: Program, prefill: Program | None, layers: int) -> None:
        self.step, self.prefill = step, prefill
        shapes = {spec.name: spec.shape for spec in step.inputs}
        heads, self.size, width = shapes["keys_0"]
        self.keys = zeros((layers, heads, self.size, width), "float32")
        self.values = zeros((layers, heads, self.size, width), "float32")
        self.mask = zeros((1, self.size), "float32")
        for program in (step, prefill):
            if program is not None:
                for layer in range(layers):
                    program.bind(f"keys_{layer}", self.keys[layer])
                    program.bind(f"values_{layer}", self.values[layer])
                program.bind("mask", self.mask)
        self.inputs = {id(program): _inputs(program) for program in (step, prefill) if program}

    def forget(self) -> None:
        self.mask[...] = MASKED

    def take_over(self, other: _Context, positions: int) -> None:
        self.keys[:, :, :positions] = other.keys[:, :, :positions]
        self.values[:, :, :positions] = other.values[:, :, :positions]
        self.mask[...] = MASKED
        self.mask[0, :positions] = 0.0


def _inputs(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    made = []
    for name in ("x", "cos", "sin"):
        spec = next(spec for spec in program.inputs if spec.name == name)
        array = zeros(spec.shape, spec.dtype)
        program.bind(name, array)
        made.append(array)
    return made[0], made[1], made[2]


class ProgramTalker:
    """The talker as step programs: one for each cache size, used as the context grows.

    Keys and values lie in arrays of the host's; a step reads them where they are and gives the new
    position's, which are written behind the others.
    """

    name = "executorch"

    def __init__(self, load: Callable[[str], Program], contexts: tuple[int, ...], *, layers: int,
                 head_dim: int, rope_base: float, prefill: bool = True,
                 limit: int | None = None) -> None:
        """:param load: gives a program by name. :param contexts: cache sizes, rising.
        :param prefill: whether there are programs that take several positions at once."""
        self._contexts = [
            _Context(load(f"talker_step_{size}"),
                     load(f"talker_prefill_{size}") if prefill else None, layers)
            for size in contexts
        ]  # fmt: skip
        self.limit = min(contexts[-1], limit or contexts[-1])
        self._angles = Angles(self.limit, head_dim, rope_base)
        self.start()

    def start(self) -> None:
        self._at = self._contexts[0]
        self._at.forget()
        self.position = 0

    def feed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.position + len(rows) > self.limit:
            raise ContextFull(
                f"{len(rows)} positions more after {self.position}: the talker has {self.limit}"
            )
        answer = None
        while len(rows):
            self._grow(self.position + 1)
            block = self._at.prefill
            if block is None or len(rows) == 1:
                taken, answer = 1, self._run(self._at.step, rows[:1])
            else:
                most = self._at.inputs[id(block)][0].shape[0]
                taken = min(len(rows), most, self._at.size - self.position)
                answer = self._run(block, rows[:taken])
            rows = rows[taken:]
        if answer is None:
            raise ValueError("no positions; expected at least one")
        return answer

    def _run(self, program: Program, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        context, start, count = self._at, self.position, len(rows)
        end = start + count
        x, cos, sin = context.inputs[id(program)]
        x[:count], x[count:] = rows, 0.0
        cos[:count], sin[:count] = self._angles.cos[start:end], self._angles.sin[start:end]
        program.run()
        keys, values = program.output("keys_new"), program.output("values_new")
        if keys.ndim == 3:
            context.keys[:, :, start], context.values[:, :, start] = keys, values
        else:
            context.keys[:, :, start:end] = keys[:, :, :count]
            context.values[:, :, start:end] = values[:, :, :count]
        context.mask[0, start:end] = 0.0
        self.position = end
        return program.output("hidden")[count - 1], program.output("logits")[count - 1]

    def _grow(self, positions: int) -> None:
        if positions <= self._at.size:
            return
        larger = next(context for context in self._contexts if context.size >= positions)
        larger.take_over(self._at, self.position)
        self._at = larger

    def close(self) -> None:
        for context in self._contexts:
            for program in (context.step, context.prefill):
                if program is not None:
                    program.close()
