# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Codec frames to samples: exact for any chunking, because all that the past means is state.

The state lies in two sets of arrays. A call reads one and writes the other, and the next call has
them the other way round, so that nothing is copied on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from omni_ros.programs import Program, zeros
from omni_ros.programs.binding import Binding

from .errors import CodesError
from .rows import MASKED, angles, inverse_frequencies


class Codebooks:
    """What the vocoder takes of a frame: a code's row of the first book, and the sum of the others.

    :param books: float32 [groups, codes, width].
    """

    def __init__(self, books: np.ndarray) -> None:
        self._books = books
        self.groups, self.codes, self.width = books.shape

    def features(self, frames: np.ndarray) -> np.ndarray:
        """Return float32 [frames, 2 * width] of codes, integers [frames, groups].

        :raises CodesError: another shape, or a code that no book has.
        """
        if frames.ndim != 2 or frames.shape[1] != self.groups or frames.dtype.kind not in "iu":
            raise CodesError(
                f"codes are {frames.dtype} {list(frames.shape)}; expected integers "
                f"[frames, {self.groups}]"
            )
        if frames.size and not 0 <= frames.min() <= frames.max() < self.codes:
            raise CodesError(
                f"codes from {frames.min()} to {frames.max()}; the codebooks have 0 to "
                f"{self.codes - 1}"
            )
        first = self._books[0][frames[:, 0]]
        rest = self._books[np.arange(1, self.groups), frames[:, 1:]].sum(axis=1)
        return np.concatenate([first, rest], axis=1, dtype=np.float32)


@dataclass
class _Size:
    """The program that takes `frames` frames at once, and its arrays."""

    frames: int
    program: Program
    features: np.ndarray
    cos: np.ndarray
    sin: np.ndarray
    mask: np.ndarray
    pcm: np.ndarray
    forth_and_back: tuple[Binding, Binding]


class StatefulVocoder:
    """One utterance after another; `start` between them."""

    def __init__(self, load: Callable[[str], Program], sizes: tuple[int, ...], books: Codebooks, *,
                 head_dim: int, window: int, rope_base: float, frame_samples: int) -> None:
        """:param load: gives a program by name. :param sizes: frames that there are programs for;
        1 is among them. :param window: frames that attention sees, the frame itself included."""
        if 1 not in sizes:
            raise ValueError(f"programs for {sizes} frames; expected one for a single frame, too")
        self.books, self.frame_samples, self._window = books, frame_samples, window
        self._inverse = inverse_frequencies(head_dim, rope_base)
        self._states: tuple[list[np.ndarray], list[np.ndarray]] | None = None
        self._sizes = [self._open(load(f"vocoder_{size}"), size)
                       for size in sorted(sizes, reverse=True)]  # fmt: skip
        self.sizes = tuple(size.frames for size in self._sizes)
        self.start()

    def start(self) -> None:
        """Begin an utterance: no frame came before the next one."""
        self.position = 0
        for array in self._states[0]:
            array.fill(0.0)
        self._side = 0

    def calls(self, frames: int) -> list[int]:
        """Return the sizes of the calls that make up a number of frames."""
        made = []
        for size in self.sizes:
            made += [size] * (frames // size)
            frames %= size
        return made

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the samples of frames, float32 [frames * frame_samples], own memory.

        :param codes: integers [frames, groups]. :raises CodesError: see Codebooks.features.
        """
        parts = list(self.steps(codes))
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    def steps(self, codes: np.ndarray) -> Iterator[np.ndarray]:
        """Decode call by call; the caller may stop in between. Each part is its own memory."""
        features = self.books.features(codes)
        done = 0
        for count in self.calls(len(codes)):
            yield self._call(features[done : done + count])
            done += count

    def _call(self, features: np.ndarray) -> np.ndarray:
        size = next(size for size in self._sizes if size.frames == len(features))
        positions = np.arange(self.position, self.position + size.frames)
        size.features[...] = features
        size.cos[...], size.sin[...] = angles(positions, self._inverse)
        self._fill_mask(size)
        size.program.use(size.forth_and_back[self._side])
        size.program.run()
        self._side ^= 1
        self.position += size.frames
        return size.pcm.reshape(-1).copy()

    def _fill_mask(self, size: _Size) -> None:
        """A new frame sees itself and up to window - 1 frames before it, old ones first."""
        kept = self._window - 1
        queries = np.arange(size.frames)[:, None]
        keys = np.arange(-kept, size.frames)[None, :]
        seen = (keys <= queries) & (queries - keys < self._window) & (keys >= -self.position)
        size.mask[...] = np.where(seen, np.float32(0.0), np.float32(MASKED))

    def _open(self, program: Program, frames: int) -> _Size:
        shapes = {spec.name: spec.shape for spec in program.inputs}
        names = [name for name in shapes if name not in ("features", "cos", "sin", "mask")]
        wanted = [shapes[name] for name in names]
        if self._states is None:
            self._states = tuple([zeros(shape, "float32") for shape in wanted] for _ in range(2))
        elif [array.shape for array in self._states[0]] != wanted:
            raise ValueError(f"{program.path}: the state of {frames} frames has other shapes")
        arrays = {name: zeros(shapes[name], "float32")
                  for name in ("features", "cos", "sin", "mask")}  # fmt: skip
        for name, array in arrays.items():
            program.bind(name, array)
        own = [program.output(f"new_{name}") for name in names]
        bindings = []
        for side in (0, 1):
            # An array may not be input and output at once, not even on the way from one binding to
            # the other: the program's own outputs step in between.
            for name, array in zip(names, own, strict=True):
                program.bind_output(f"new_{name}", array)
            old, new = self._states[side], self._states[1 - side]
            bindings.append(program.bind_all(
                dict(zip(names, old, strict=True)),
                {f"new_{name}": array for name, array in zip(names, new, strict=True)},
            ))  # fmt: skip
        return _Size(frames, program, **arrays, pcm=program.output("pcm"),
                     forth_and_back=(bindings[0], bindings[1]))  # fmt: skip

    def close(self) -> None:
        for size in self._sizes:
            size.program.close()


class WindowVocoder:
    """The reference server's way: each chunk is decoded from nothing, with history before it.

    The history's samples are cut off again. What lies further back than its frames is lost, so the
    samples differ from a decode of the whole; they are those of vLLM-Omni.
    """

    def __init__(self, vocoder: StatefulVocoder, left_context_frames: int = 72) -> None:
        self._vocoder, self._left = vocoder, left_context_frames
        self.frame_samples = vocoder.frame_samples
        self.start()

    def start(self) -> None:
        """Begin an utterance."""
        self._history = np.empty((0, self._vocoder.books.groups), np.int64)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return the samples of the new frames, [frames, groups], as StatefulVocoder.decode."""
        parts = list(self.steps(codes))
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    def steps(self, codes: np.ndarray) -> Iterator[np.ndarray]:
        """As StatefulVocoder.steps; the parts of the history are empty."""
        window = np.concatenate([self._history, codes])
        cut = len(self._history) * self.frame_samples
        self._history = window[max(0, len(window) - self._left) :]
        self._vocoder.start()
        for part in self._vocoder.steps(window):
            dropped = min(cut, len(part))
            cut -= dropped
            yield part[dropped:]

    def close(self) -> None:
        self._vocoder.close()
