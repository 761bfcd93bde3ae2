# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a bundle that are no programs: statistics and token table, looked at as numbers.

An export checked them; but a bundle comes from anywhere, and an arm that gets NaN or a thousandfold
moves by it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.layout import Manifest
from omni_ros.policy.normalise import NEEDED, StatisticsError, check_statistics, parse_mode

#: dtype of the table's file by the manifest's word; numpy has no bfloat16, its bits are kept.
STORED = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16}
#: More than any statistics have.
MAX_STATISTICS_BYTES = 1 << 22
#: Bytes of the table that are looked at together.
_BLOCK = 1 << 22
_EXPONENT = np.uint16(0x7F80)


def read_statistics(path: Path, manifest: Manifest, feature: str) -> dict[str, np.ndarray]:
    """Return the statistics of "state" or "action" that its mode needs, float32 [width] each.

    :raises BundleError: they cannot be read, or no robot should be moved by them.
    """
    key = getattr(manifest.features, feature)
    mode = parse_mode(getattr(manifest.normalisation, feature))
    joints = manifest.joints if feature == "action" else manifest.state_joints
    names = [] if isinstance(joints, str) else [joint.name for joint in joints]
    try:
        if path.stat().st_size > MAX_STATISTICS_BYTES:
            raise ValueError(f"it has more than {MAX_STATISTICS_BYTES} bytes")
        table = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(table, dict) or not isinstance(table.get(key, {}), dict):
            raise ValueError(f"{short(table)} is no mapping of features to statistics")
        values = {
            name: _numbers(f"{key}: {name}", table[key][name])
            for name in NEEDED[mode] if name in table.get(key, {})
        }
        check_statistics(
            mode, values, feature=key, width=getattr(manifest.dimensions, feature),
            available=[name for name in table if name != key], names=names,
            remedy="export the bundle again, with --stats FILE",
        )
    except (StatisticsError, BundleError) as error:
        raise BundleError(f"{path}: {error}") from None
    except (OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BundleError(f"{path}: holds no statistics of {key} ({_line(error)})") from error
    return values


def check_table(path: Path, manifest: Manifest) -> None:
    """Check that the token table is what the manifest says, and finite.

    :raises BundleError: it is not; with both shapes, or the row at fault.
    """
    said = manifest.embeddings
    table = open_table(path, dtype=said.dtype, rows=said.rows, width=said.width)
    step = max(1, _BLOCK // max(1, table[:1].nbytes))
    for start in range(0, len(table), step):
        block = table[start:start + step]
        if said.dtype == "bfloat16":
            bad = (block & _EXPONENT) == _EXPONENT
        else:
            bad = ~np.isfinite(block)
        if bad.any():
            row = start + int(np.flatnonzero(bad.any(axis=1))[0])
            raise BundleError(
                f"{path}: row {row} holds values that are not finite; the file is damaged or the "
                "training went wrong: export again, from another checkpoint"
            )


def open_table(path: Path, *, dtype: str, rows: int, width: int) -> np.ndarray:
    """Return the token table, mapped: [rows, width] of the stored dtype.

    :raises BundleError: the file is no such table; with both shapes.
    """
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, OverflowError, TypeError, SyntaxError, MemoryError,
            RecursionError) as error:  # fmt: skip
        raise BundleError(f"{path}: is no readable .npy file ({_line(error)})") from error
    wanted = np.dtype(STORED[dtype])
    if not isinstance(table, np.ndarray) or (table.dtype, table.shape) != (wanted, (rows, width)):
        raise BundleError(
            f"{path}: is {getattr(table, 'dtype', None)} {list(getattr(table, 'shape', ()))}, "
            f"the manifest says {dtype} [{rows}, {width}], stored as {wanted}"
        )
    # A plain array over the map: the memmap class makes objects at every use.
    return table.view(np.ndarray)


def _numbers(where: str, values: object) -> np.ndarray:
    plain = isinstance(values, list) and all(type(value) in (int, float) for value in values)
    if not plain:
        raise BundleError(f"{where} is {short(values)}; expected a list of numbers")
    return np.array(values, np.float64)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
