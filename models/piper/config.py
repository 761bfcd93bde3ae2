# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a Piper voice's JSON file says, and the sizes that this rebuild knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.errors import CheckpointError
from ..common.weights import read_json

#: Symbols that every Piper voice has: between phonemes, before the first, after the last.
PAD, START, END = "_", "^", "$"


@dataclass(frozen=True)
class PiperSizes:
    """Sizes of the network at Piper's quality "medium". They are in no file; weights must fit."""

    width: int = 192
    heads: int = 2
    layers: int = 6
    window: int = 4
    hidden: int = 768
    kernel: int = 3
    duration_flows: tuple[int, ...] = (7, 5, 3)
    duration_layers: int = 3
    bins: int = 10
    tail: float = 5.0
    flows: tuple[int, ...] = (6, 4, 2, 0)
    flow_layers: int = 4
    flow_kernel: int = 5
    rates: tuple[int, ...] = (8, 8, 4)
    resblock_dilations: tuple[tuple[int, int], ...] = ((1, 2), (2, 6), (3, 12))

    @property
    def frame_samples(self) -> int:
        """Samples of a frame."""
        samples = 1
        for rate in self.rates:
            samples *= rate
        return samples


@dataclass(frozen=True)
class PiperConfig:
    """A voice's JSON file."""

    sample_rate: int
    espeak_voice: str
    language: str
    noise_scale: float
    noise_w: float
    length_scale: float
    symbols: Mapping[str, int]
    sizes: PiperSizes = PiperSizes()


def read_config(path: Path) -> PiperConfig:
    """Read NAME.onnx.json.

    :raises CheckpointError: it is none, or of a voice that this rebuild does not take.
    """
    data = read_json(path)

    def of(*keys: str, kind: type | tuple[type, ...]) -> Any:
        value: Any = data
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise CheckpointError(f"{path}: {'.'.join(keys)} is {value!r:.60}: expected a value of "
                                  "the kind that Piper writes there")
        return value

    number = (int, float)
    if of("phoneme_type", kind=str) != "espeak":
        raise CheckpointError(
            f"{path}: phoneme_type is {data['phoneme_type']!r}: expected 'espeak'"
        )
    if of("num_speakers", kind=int) != 1:
        raise CheckpointError(f"{path}: has {data['num_speakers']} speakers: expected 1")
    symbols = {}
    for symbol, ids in of("phoneme_id_map", kind=dict).items():
        if not (isinstance(ids, list) and len(ids) == 1 and isinstance(ids[0], int)):
            raise CheckpointError(f"{path}: phoneme_id_map[{symbol!r}] is {ids!r:.60}: expected a "
                                  "list of one number")
        symbols[symbol] = ids[0]
    for symbol in (PAD, START, END, " "):
        if symbol not in symbols:
            raise CheckpointError(f"{path}: phoneme_id_map has no {symbol!r}")
    return PiperConfig(
        sample_rate=of("audio", "sample_rate", kind=int),
        espeak_voice=of("espeak", "voice", kind=str),
        language=of("language", "code", kind=str),
        noise_scale=float(of("inference", "noise_scale", kind=number)),
        noise_w=float(of("inference", "noise_w", kind=number)),
        length_scale=float(of("inference", "length_scale", kind=number)),
        symbols=symbols,
    )
