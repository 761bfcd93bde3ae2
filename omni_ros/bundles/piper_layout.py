# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""bundle.yaml of a Piper voice, and what its parts must be to each other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.layout import FileEntry, Memory, ProgramEntry, Provenance, Tolerance
from omni_ros.bundles.schema import number, size

if TYPE_CHECKING:
    from omni_ros.bundles.bundle import Bundle

#: Symbols around and between phonemes, which no text holds.
PAD, START, END = "_", "^", "$"
MAX_SYMBOLS_BYTES = 1 << 18


@dataclass(frozen=True)
class Sound:
    """What comes out. `frame_samples`: of one frame of the network; `language`: as in en_US."""

    sample_rate: int = size(4000, 192000)
    frame_samples: int = size(1, 1 << 16)
    language: str


@dataclass(frozen=True)
class Symbols:
    """What goes in: phonemes as espeak-ng's voice `espeak_voice` writes them.

    `file`: JSON, a symbol's row of the table; `table`: an .npy file [rows, width], float32.
    """

    espeak_voice: str
    file: str
    table: str
    rows: int = size(1, 1 << 16)
    width: int = size(2, 1 << 16)


@dataclass(frozen=True)
class Drawing:
    """Standard deviations of the noise that the voice is meant to be used with, and its speed."""

    noise_scale: float = number(0.0, 10.0)
    noise_w: float = number(0.0, 10.0)
    length_scale: float = number(0.1, 10.0)


@dataclass(frozen=True)
class Windows:
    """Programs of one part, NAME_SIZE for each of `sizes`, smallest first.

    `context`: how far to either side what comes out depends on what goes in; that many places of
    a window are right only where the utterance begins or ends there.
    """

    sizes: tuple[int, ...] = size(1, 1 << 16)
    context: int = size(0, 1 << 12)


@dataclass(frozen=True)
class Licence:
    """Of the weights, as their maker says. `file`: the maker's own words."""

    data: str
    package: str
    note: str
    file: str


@dataclass(frozen=True)
class PiperManifest:
    """bundle.yaml of a Piper voice.

    Programs: text_N (symbols, mask, noise -> mean, spread, durations), flow_N (drawn, mask ->
    frames), decoder_N (frames -> samples).
    """

    family: str
    name: str
    sound: Sound
    symbols: Symbols
    drawing: Drawing
    text: Windows
    flow: Windows
    decoder: Windows
    licence: Licence
    programs: dict[str, ProgramEntry]
    memory: Memory
    files: dict[str, FileEntry]
    golden: dict[str, str]
    tolerance: Tolerance
    provenance: Provenance


def named(manifest: PiperManifest) -> dict[str, str]:
    """Return the files that are named, by the place."""
    return {
        "symbols.file": manifest.symbols.file,
        "symbols.table": manifest.symbols.table,
        "licence.file": manifest.licence.file,
    }


def check(manifest: PiperManifest) -> None:
    """Check that the programs are those that the windows need. :raises BundleError: they are not.
    """
    width, samples = manifest.symbols.width, manifest.sound.frame_samples
    wanted: dict[str, dict[str, tuple[int, ...]]] = {}
    for part in ("text", "flow", "decoder"):
        windows: Windows = getattr(manifest, part)
        sizes = windows.sizes
        if not sizes or list(sizes) != sorted(set(sizes)):
            raise BundleError(f"{part}.sizes is {list(sizes)}, expected sizes that rise")
        if sizes[0] <= 2 * windows.context:
            raise BundleError(f"{part}.sizes begins with {sizes[0]}, expected more than twice the "
                              f"context of {windows.context}")
        for n in sizes:
            wanted[f"{part}_{n}"] = {
                "text": {"symbols": (n, width), "mask": (n, 1), "noise": (n, 2),
                         "mean": (n, width), "spread": (n, width), "durations": (n, 1)},
                "flow": {"drawn": (1, width, n), "mask": (1, 1, n), "frames": (1, width, n)},
                "decoder": {"frames": (1, width, n), "samples": (1, 1, n * samples)},
            }[part]
    if set(wanted) != set(manifest.programs):
        raise BundleError(f"programs are {', '.join(manifest.programs)}, the windows need "
                          f"{', '.join(wanted)}")
    for name, tensors in wanted.items():
        entry = manifest.programs[name]
        found = {t.name: t.shape for t in (*entry.inputs, *entry.outputs) if t.dtype == "float32"}
        if found != tensors:
            raise BundleError(f"programs.{name} has {found}, expected float32 of {tensors}")


def contents(bundle: Bundle) -> None:
    """Look at symbols and table. :raises BundleError: they are not what the manifest says."""
    read_symbols(bundle)
    read_table(bundle)


def read_symbols(bundle: Bundle) -> dict[str, int]:
    """Return the row of each symbol. :raises BundleError: the file holds something else."""
    said = bundle.manifest.symbols
    path = bundle.path(said.file)
    try:
        if path.stat().st_size > MAX_SYMBOLS_BYTES:
            raise ValueError(f"it has more than {MAX_SYMBOLS_BYTES} bytes")
        table = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(table, dict):
            raise ValueError(f"{short(table)} is no mapping of symbols to rows")
        for symbol, row in table.items():
            if type(row) is not int or not 0 <= row < said.rows:
                raise ValueError(f"{symbol!r} has the row {short(row)} of {said.rows}")
        lacking = [symbol for symbol in (PAD, START, END, " ") if symbol not in table]
        if lacking:
            raise ValueError(f"it lacks {lacking}")
    except (OSError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BundleError(f"{path}: holds no symbols ({reason})") from error
    return table


def read_table(bundle: Bundle) -> np.ndarray:
    """Return the symbol table, float32 [rows, width]. :raises BundleError: it is none."""
    from omni_ros.bundles.contents import open_table

    said = bundle.manifest.symbols
    path: Path = bundle.path(said.table)
    table = open_table(path, dtype="float32", rows=said.rows, width=said.width)
    if not np.isfinite(table).all():
        raise BundleError(f"{path}: holds values that are not finite; export again")
    return table
