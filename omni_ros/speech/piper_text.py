# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Phonemes to what the flow starts from: symbols, the text encoder, durations, the draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from omni_ros.bundles.piper_layout import END, PAD, START, Drawing
from omni_ros.programs import Program
from omni_ros.speech.piper_windows import bind

#: Marks that may end a piece of a clause that is too long for the largest program, best first.
_BREAKS = (".!?;:", ",", " ")


@dataclass(frozen=True)
class Draw:
    """What randomness there is. :param noise: of sound, :param durations: of durations."""

    noise: float
    durations: float
    length: float
    seed: int

    @classmethod
    def of(cls, drawing: Drawing, *, rate: float, seed: int, deterministic: bool) -> Draw:
        """Return that of an utterance."""
        return cls(
            0.0 if deterministic else drawing.noise_scale,
            0.0 if deterministic else drawing.noise_w,
            drawing.length_scale / rate, seed,
        )


class SymbolTable:
    """Phonemes to rows of the table."""

    def __init__(self, rows: Mapping[str, int], table: np.ndarray, longest: int) -> None:
        """:param longest: symbols that the largest program takes."""
        self._rows, self._table = rows, table
        # Between any two symbols and at both ends stands a pad.
        self.most = (longest - 3) // 2

    def known(self, phonemes: str) -> str:
        """Return the phonemes that the voice has symbols for."""
        return "".join(symbol for symbol in phonemes if symbol in self._rows)

    def pieces(self, phonemes: str) -> list[str]:
        """Cut phonemes into pieces that fit, at the best place that there is."""
        pieces = []
        while len(phonemes) > self.most:
            end = self.most
            for marks in _BREAKS:
                found = max(phonemes.rfind(mark, self.most // 2, self.most) for mark in marks)
                if found > 0:
                    end = found + 1
                    break
            pieces.append(phonemes[:end].strip())
            phonemes = phonemes[end:].strip()
        return [piece for piece in (*pieces, phonemes) if piece]

    def symbols(self, phonemes: str) -> np.ndarray:
        """Return the rows for a piece, float32 [symbols, width]."""
        rows, pad = self._rows, self._rows[PAD]
        ids = [rows[START], pad]
        for symbol in phonemes:
            ids += [rows[symbol], pad]
        ids.append(rows[END])
        return self._table[ids]


class TextEncoder:
    """The text programs, by length."""

    def __init__(self, programs: Mapping[int, Program]) -> None:
        self._programs = [(size, programs[size]) for size in sorted(programs)]
        for _, program in self._programs:
            bind(program)

    def encode(
        self, symbols: np.ndarray, noise: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean and spread, [symbols, width] each, and durations [symbols] in frames.

        :param noise: what durations are drawn from, [symbols, 2]; None for 0. Views, until the
            next call.
        """
        count = len(symbols)
        program = next(p for size, p in self._programs if size >= count)
        given, mask, drawn = (program.input(name) for name in ("symbols", "mask", "noise"))
        assert given is not None and mask is not None and drawn is not None
        given[:count], given[count:] = symbols, 0.0
        mask[:count], mask[count:] = 1.0, 0.0
        drawn[...] = 0.0
        if noise is not None:
            drawn[:count] = noise
        program.run()
        mean, spread = program.output("mean")[:count], program.output("spread")[:count]
        return mean, spread, program.output("durations")[:count, 0]

    def draw(self, symbols: np.ndarray, draw: Draw, number: int, least: int) -> np.ndarray:
        """Return what the flow starts from, float32 [width, frames].

        :param number: of the piece within the utterance: each draws its own.
        :param least: frames; a shorter one is made longer at its end, where nothing is said.
        """
        random = np.random.Generator(np.random.PCG64([draw.seed, number]))
        noise = None
        if draw.durations:
            # By symbol, so that the length of the program makes no difference.
            noise = random.standard_normal((len(symbols), 2), np.float32) * draw.durations
        mean, spread, durations = self.encode(symbols, noise)
        lengths = frames_of(durations, draw.length, least)
        drawn = np.repeat(mean, lengths, axis=0)
        if draw.noise:
            noise = random.standard_normal(drawn.shape, np.float32)
            drawn += noise * np.repeat(spread, lengths, axis=0) * draw.noise
        return np.ascontiguousarray(drawn.T)


def frames_of(durations: np.ndarray, length: float, least: int) -> np.ndarray:
    """Return whole frames of each symbol, at least `least` in all.

    Rounded up, as in training; not where the product lies above a whole number by rounding alone,
    so that two machines say a text in the same time.
    """
    scaled = durations.astype(np.float64) * length
    frames = np.ceil(scaled - 1e-4 * np.maximum(1.0, scaled)).astype(np.int64)
    frames = np.maximum(frames, (scaled > 0).astype(np.int64))
    missing = least - int(frames.sum())
    if missing > 0:
        frames[-1] += missing
    return frames
