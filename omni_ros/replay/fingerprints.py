# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a tensor held, in a hundred bytes: whether another run had the same, and if not, how far off.

A digest of the bytes says whether two tensors are equal, bit for bit. A sketch says about how far
apart they are if not: 16 sums of the values with signs drawn once for all. The squared distance of
two sketches has the squared distance of the tensors as its expectation, and is within a third of it in
most cases (a count sketch, Charikar et al. 2002).
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Sums of a sketch. Part of the format of a recording, as are the signs.
SUMS = 16
#: Values that share a pattern of signs; each block of them has a sign of its own besides.
_BLOCK = 1 << 14

#: Names; those that end in "/" go on with a camera or the number of a step.
PICTURE, PIXELS, IMAGE_TOKENS = "picture/", "pixels/", "image_tokens/"
STATE, PREFIX, VALID = "state", "prefix", "valid"
NOISE, STEP = "noise", "x/"


@dataclass(frozen=True)
class Fingerprint:
    """One tensor, or several taken as one.

    :param digest: of dtypes, shapes and bytes, 64 bits. :param count: of values.
    :param scale: root of the mean square. :param sketch: f32 [16].
    """

    name: str
    digest: int
    count: int
    scale: float
    sketch: np.ndarray

    def same(self, other: Fingerprint) -> bool:
        """True if both tensors hold the same bits."""
        return self.digest == other.digest and self.count == other.count

    def distance(self, other: Fingerprint) -> float:
        """Return about the root mean square of the difference; 0 for the same, infinite for
        tensors of different sizes or values that are not finite."""
        if self.same(other):
            return 0.0
        if self.count != other.count:
            return math.inf
        with np.errstate(invalid="ignore", over="ignore"):
            apart = self.sketch.astype(np.float64) - other.sketch.astype(np.float64)
            distance = math.sqrt(float(apart @ apart) / max(1, self.count))
        return distance if math.isfinite(distance) else math.inf


def fingerprint(name: str, *arrays: np.ndarray) -> Fingerprint:
    """Return the fingerprint of a tensor, or of several in that order.

    :param arrays: of any real dtype and shape.
    """
    count, square = 0, 0.0
    sketch = np.zeros(SUMS, np.float64)
    for number, array in enumerate(arrays):
        array = np.ascontiguousarray(array)
        with np.errstate(invalid="ignore", over="ignore"):
            values = array.reshape(-1).astype(np.float32, copy=False)
            square += float(np.dot(values, values))
            sketch += _sums(values, number)
        count += array.size
    scale = math.sqrt(square / count) if count and square >= 0.0 else 0.0
    return Fingerprint(name, digest(*arrays), count, scale, sketch.astype(np.float32))


def digest(*arrays: np.ndarray) -> int:
    """Return the digest of a tensor, or of several in that order: equal for equal bits."""
    hashed = hashlib.blake2b(digest_size=8)
    for array in arrays:
        array = np.ascontiguousarray(array)
        hashed.update(f"{array.dtype.str}{list(array.shape)}".encode())
        hashed.update(array.reshape(-1).view(np.uint8) if array.size else b"")
    return int.from_bytes(hashed.digest(), "little")


def fill_fingerprint(message: Any, value: Fingerprint) -> Any:
    """Write a fingerprint to an omni_ros/Fingerprint message, and return that."""
    message.name, message.digest, message.count = value.name, value.digest, value.count
    message.scale, message.sketch = value.scale, value.sketch
    return message


def read_fingerprint(message: Any) -> Fingerprint:
    """Return what an omni_ros/Fingerprint message holds.

    :raises ValueError: its sketch is of another length.
    """
    sketch = np.asarray(message.sketch, np.float32)
    if sketch.shape != (SUMS,):
        raise ValueError(f"fingerprint {message.name!r} has {len(sketch)} sums; expected {SUMS}")
    return Fingerprint(str(message.name), int(message.digest), int(message.count),
                       float(message.scale), sketch)


def by_name(fingerprints: Sequence[Fingerprint]) -> dict[str, Fingerprint]:
    """Return fingerprints by their names."""
    return {one.name: one for one in fingerprints}


@functools.lru_cache(maxsize=8)
def _signs(count: int, key: int) -> np.ndarray:
    """Return f32 [count] of -1 and 1; NumPy promises this stream of bits for good."""
    words = np.random.Philox(key=[0x6F6D6E69, key]).random_raw(-(-count // 64))
    bits = np.unpackbits(np.ascontiguousarray(words.astype("<u8")).view(np.uint8), bitorder="little")
    return bits[:count].astype(np.float32) * np.float32(2.0) - np.float32(1.0)


def _sums(values: np.ndarray, number: int) -> np.ndarray:
    """Return the sums f64 [SUMS] of one tensor's values, f32 [n]; each tensor has other signs."""
    pattern, size = _signs(_BLOCK, 0), len(values)
    blocks = size // _BLOCK
    whole = blocks * _BLOCK
    turn = _signs(blocks + 1, 1 + number)
    folded = np.zeros(_BLOCK, np.float32)
    if blocks:
        np.matmul(turn[:blocks], values[:whole].reshape(blocks, _BLOCK), out=folded)
    folded[:size - whole] += turn[blocks] * values[whole:]
    folded *= pattern
    return folded.reshape(-1, SUMS).sum(axis=0, dtype=np.float64)
