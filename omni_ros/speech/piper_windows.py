# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A clause of a Piper voice: from what was drawn to samples, window by window, exactly.

Windows slide: one that begins where the clause begins is right from its first frame on, any other
from `context` frames on; likewise at the end. So the parts that are used are those of the whole.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping

import numpy as np

from omni_ros.programs import Program


class Flow:
    """The flow's programs, with inputs of their own.

    :param programs: by frames of a window. :param context: frames on either side.
    """

    def __init__(self, programs: Mapping[int, Program], context: int) -> None:
        self.context = context
        self._programs = [(size, programs[size]) for size in sorted(programs)]
        for size, program in self._programs:
            bind(program)

    def run(self, drawn: np.ndarray, start: int) -> tuple[np.ndarray, int]:
        """Compute what can be known from frame `start` - context on.

        :param drawn: [width, all frames]. :param start: the first frame that is wanted.
        :return: frames [width, n] from `start` on, and n, at least 1. A view, until the next run.
        """
        total = drawn.shape[1]
        first = max(0, start - self.context)
        size, program = next(
            ((s, p) for s, p in self._programs if s >= total - first), self._programs[-1]
        )
        count = min(size, total - first)
        given, mask = program.input("drawn"), program.input("mask")
        assert given is not None and mask is not None
        given[0, :, :count] = drawn[:, first:first + count]
        given[0, :, count:] = 0.0
        mask[0, 0, :count] = 1.0
        mask[0, 0, count:] = 0.0
        program.run()
        end = count if first + count == total else count - self.context
        frames = program.output("frames")[0, :, start - first:end]
        return frames, frames.shape[1]


class Decoder:
    """The decoder's programs, likewise."""

    def __init__(self, programs: Mapping[int, Program], context: int, frame_samples: int) -> None:
        self.context, self.frame_samples = context, frame_samples
        self.sizes = tuple(sorted(programs))
        self._programs = dict(programs)
        for program in programs.values():
            bind(program)

    def new_frames(self, size: int) -> int:
        """Return the frames that a window gives in the middle of a clause."""
        return size - 2 * self.context

    def place(self, size: int, start: int, total: int) -> tuple[int, int]:
        """Return where a window begins that gives frame `start`, and up to which frame it gives.

        :param total: frames of the clause, at least `size`.
        """
        first = min(max(0, start - self.context), total - size)
        last = first + size
        return first, total if last == total else last - self.context

    def smallest_for(self, start: int, total: int, most: int) -> int:
        """Return the size to use where up to `most` is allowed: no larger than what is left needs.
        """
        allowed = [s for s in self.sizes if s <= min(most, total)] or [self.sizes[0]]
        return next((s for s in allowed if self.place(s, start, total)[1] == total), allowed[-1])

    def run(self, frames: np.ndarray, size: int, first: int, start: int, end: int) -> np.ndarray:
        """Return the samples of the frames from `start` to `end`, from a window at `first`."""
        program = self._programs[size]
        given = program.input("frames")
        assert given is not None
        given[0] = frames[:, first:first + size]
        program.run()
        samples = program.output("samples")[0, 0]
        scale = self.frame_samples
        return samples[(start - first) * scale:(end - first) * scale].copy()


class ClauseSound:
    """One clause on its way from drawn values to samples.

    :param drawn: float32 [width, frames], at least as many as the decoder's smallest window.
    :ivar frames: what the flow made of it so far.
    """

    def __init__(self, drawn: np.ndarray, flow: Flow, decoder: Decoder) -> None:
        self._drawn, self._flow, self._decoder = drawn, flow, decoder
        self.frames = np.empty_like(drawn)
        self._flowed = 0
        self.total = drawn.shape[1]
        self.spoken = 0  # frames

    @property
    def over(self) -> bool:
        """Whether all of it was made."""
        return self.spoken == self.total

    def steps(
        self, most: int, timings: dict[str, float]
    ) -> Generator[np.ndarray | None, None, None]:
        """Make the next samples with a window of up to `most` frames.

        A generator: it stops with None before each run of a program, so that one can be the last,
        and ends with the samples.
        """
        decoder = self._decoder
        size = decoder.smallest_for(self.spoken, self.total, most)
        first, end = decoder.place(size, self.spoken, self.total)
        while self._flowed < first + size:
            yield None
            began = time.perf_counter()
            frames, count = self._flow.run(self._drawn, self._flowed)
            self.frames[:, self._flowed:self._flowed + count] = frames
            self._flowed += count
            timings["flow"] = timings.get("flow", 0.0) + time.perf_counter() - began
        yield None
        began = time.perf_counter()
        samples = decoder.run(self.frames, size, first, self.spoken, end)
        timings["decoder"] = timings.get("decoder", 0.0) + time.perf_counter() - began
        self.spoken = end
        yield samples


def bind(program: Program) -> None:
    """Give each input of a program memory of its own, filled with 0."""
    from omni_ros.programs import zeros

    for spec in program.inputs:
        program.bind(spec.name, zeros(spec.shape, spec.dtype))
