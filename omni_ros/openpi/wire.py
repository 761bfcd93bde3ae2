# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""OpenPI's wire format: msgpack, with numpy arrays as maps.

Written as openpi does: ``{b"__ndarray__": True, b"data", b"dtype", b"shape"}``. Read in that
spelling and in msgpack-numpy's older one (``nd``, ``type``, ``kind``, ``shape``, ``data``), keys as
bytes or text. Decoded arrays own their memory and may be written to.

What comes from a network is walked through before anything is built of it, so that a header that
claims a billion entries costs nothing: time and memory are bounded by the limits.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from ..requirements import require
from .errors import WireError, brief

_KINDS = "biufSU"
_DTYPE = re.compile(r"[<>|=]?[biufSU][0-9]{1,7}")
#: Length of the fixed part behind a first byte, and what it is, for 0xc0 .. 0xdf.
_SCALAR, _BYTES, _TEXT, _LIST, _MAP = range(5)
_HEADS = {
    0xC0: (_SCALAR, 0), 0xC2: (_SCALAR, 0), 0xC3: (_SCALAR, 0),
    0xC4: (_BYTES, 1), 0xC5: (_BYTES, 2), 0xC6: (_BYTES, 4),
    0xCA: (_SCALAR, 4), 0xCB: (_SCALAR, 8),
    0xCC: (_SCALAR, 1), 0xCD: (_SCALAR, 2), 0xCE: (_SCALAR, 4), 0xCF: (_SCALAR, 8),
    0xD0: (_SCALAR, 1), 0xD1: (_SCALAR, 2), 0xD2: (_SCALAR, 4), 0xD3: (_SCALAR, 8),
    0xD9: (_TEXT, 1), 0xDA: (_TEXT, 2), 0xDB: (_TEXT, 4),
    0xDC: (_LIST, 2), 0xDD: (_LIST, 4), 0xDE: (_MAP, 2), 0xDF: (_MAP, 4),
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What a message may cost. :param items: values and keys, in all. :param depth: of nesting.

    :param text: characters of one text, bytes of one key.
    """

    bytes: int = 16 << 20
    items: int = 100_000
    depth: int = 16
    text: int = 1 << 20
    dimensions: int = 8


LIMITS = Limits()


def pack(value: Any) -> bytes:
    """Return a value as bytes.

    :param value: maps with text keys, lists, tuples (which arrive as lists), numbers, text, bytes,
        None, numpy arrays and scalars of booleans, integers, floats and text.
    :raises WireError: it holds something else, say an array of objects or of complex numbers.
    """
    msgpack = _msgpack()
    try:
        return msgpack.packb(value, default=_encode)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise WireError(f"cannot be sent: {error}") from error


def unpack(data: bytes | bytearray | memoryview, limits: Limits = LIMITS) -> Any:
    """Return the value that bytes hold; arrays are copies in native byte order.

    :raises WireError: they are too many, cut off, hostile or not of this format.
    """
    check(data, limits)
    msgpack = _msgpack()

    def build(pairs: list[tuple[Any, Any]]) -> Any:
        return _decode(pairs, limits)

    try:
        return msgpack.unpackb(
            data, object_pairs_hook=build, raw=False, strict_map_key=False,
            max_array_len=limits.items, max_map_len=limits.items,
        )
    except WireError:
        raise
    except (ValueError, TypeError, OverflowError, MemoryError, RecursionError,
            msgpack.UnpackException) as error:  # fmt: skip
        raise WireError(f"a message of {len(data)} bytes cannot be read: {error}") from error


def check(data: bytes | bytearray | memoryview, limits: Limits = LIMITS) -> int:
    """Walk through a message without building it; return how many values it has.

    :raises WireError: it is cut off, goes on behind its end, or is beyond a limit.
    """
    total = len(data)
    if total > limits.bytes:
        raise WireError(f"a message of {total} bytes; expected at most {limits.bytes}")
    if total == 0:
        raise WireError("an empty message; expected a msgpack value")
    position = count = 0
    # What is still to come at each level; maps count keys and values, `keys` says which are maps.
    pending, maps = [1], [False]
    while pending:
        if pending[-1] == 0:
            pending.pop()
            maps.pop()
            continue
        is_key = maps[-1] and pending[-1] % 2 == 0
        pending[-1] -= 1
        count += 1
        if count > limits.items:
            raise WireError(f"more than {limits.items} values in a message; send arrays as arrays")
        if position >= total:
            raise WireError(f"the message ends at byte {total}, in the middle of a value")
        kind, size, position = _head(data, position)
        if position > total or (kind in (_BYTES, _TEXT) and size > total - position):
            raise WireError(f"the message ends at byte {total}, in the middle of a value")
        if is_key and (kind not in (_BYTES, _TEXT) or size > 1024):
            raise WireError(f"a map key before byte {position}; expected short text or bytes")
        if kind == _TEXT and size > limits.text:
            raise WireError(f"a text of {size} bytes; expected at most {limits.text}")
        if kind in (_BYTES, _TEXT):
            position += size
        elif kind in (_LIST, _MAP):
            entries = size * (2 if kind == _MAP else 1)
            # Each takes a byte at least.
            if entries > total - position:
                raise WireError(f"{entries} values announced with {total - position} bytes to come")
            if len(pending) > limits.depth:
                raise WireError(f"nested deeper than {limits.depth} levels")
            pending.append(entries)
            maps.append(kind == _MAP)
    if position != total:
        raise WireError(f"{total - position} bytes behind the end of the message")
    return count


def _head(data: Any, position: int) -> tuple[int, int, int]:
    """Return kind, size and where the content begins."""
    first = data[position]
    position += 1
    if first <= 0x7F or first >= 0xE0:
        return _SCALAR, 0, position
    if first <= 0x8F:
        return _MAP, first & 0x0F, position
    if first <= 0x9F:
        return _LIST, first & 0x0F, position
    if first <= 0xBF:
        return _TEXT, first & 0x1F, position
    if first not in _HEADS:
        raise WireError(
            f"byte {position - 1} is 0x{first:02x}, an extension type; expected plain msgpack"
        )
    kind, width = _HEADS[first]
    if kind == _SCALAR:
        return kind, 0, position + width
    return kind, int.from_bytes(data[position:position + width], "big"), position + width


def _encode(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind not in _KINDS:
            raise TypeError(
                f"{brief(value)} of dtype {value.dtype}; expected booleans, integers, floats or "
                "text"
            )
        if isinstance(value, np.ndarray):
            return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str,
                    b"shape": value.shape}  # fmt: skip
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    if isinstance(value, int):
        raise TypeError("an integer beyond 64 bits")
    raise TypeError(
        f"something of type {type(value).__name__}; expected numbers, text, lists, maps and arrays"
    )


def _decode(pairs: list[tuple[Any, Any]], limits: Limits) -> Any:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise WireError("a map has the same key twice")
    if len(entries) < 3:
        return entries

    def field(name: str) -> Any:
        return entries.get(name.encode(), entries.get(name))

    if field("__ndarray__") is not None:
        _expect_true(field("__ndarray__"), "__ndarray__")
        return _array(field("data"), _dtype(field("dtype")), field("shape"), limits)
    if field("__npgeneric__") is not None:
        _expect_true(field("__npgeneric__"), "__npgeneric__")
        return _scalar(field("data"), _dtype(field("dtype")))
    if isinstance(field("nd"), bool) and field("kind") is not None and field("type") is not None:
        dtype = _dtype(field("type"))
        kind = field("kind")
        if kind not in ("", b"", dtype.kind, dtype.kind.encode()):
            raise WireError(f"an array of kind {brief(kind)} and dtype {dtype.str}")
        if field("nd"):
            return _array(field("data"), dtype, field("shape"), limits)
        return _array(field("data"), dtype, [1], limits)[0]
    return entries


def _expect_true(value: Any, name: str) -> None:
    if value is not True:
        raise WireError(f"{name} is {brief(value)}; expected true")


def _dtype(given: Any) -> np.dtype:
    if isinstance(given, bytes) and len(given) < 32:
        given = given.decode("latin-1")
    if not isinstance(given, str) or not _DTYPE.fullmatch(given):
        raise WireError(
            f"an array of dtype {brief(given)}; expected one of booleans, integers, floats or "
            "text, such as '<f4'"
        )
    try:
        return np.dtype(given)
    except (TypeError, ValueError) as error:
        raise WireError(f"an array of dtype {given!r}, which there is not") from error


def _array(data: Any, dtype: np.dtype, shape: Any, limits: Limits) -> np.ndarray:
    if not isinstance(data, bytes):
        raise WireError(f"the data of an array is {brief(data)}; expected bytes")
    good = isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**31 for n in shape)
    if not good or len(shape) > limits.dimensions or dtype.itemsize == 0:
        raise WireError(
            f"an array {dtype.str} of shape {brief(shape) if not good else shape} with {len(data)} "
            f"bytes; expected at most {limits.dimensions} sizes, none below 0"
        )
    needed = math.prod(shape) * dtype.itemsize
    if needed != len(data):
        raise WireError(
            f"an array {dtype.str} {shape} with {len(data)} bytes; its shape needs {needed}"
        )
    try:
        values = np.frombuffer(data, dtype).reshape(shape)
    except ValueError as error:  # nothing in it, but sizes whose product numpy cannot hold
        raise WireError(f"an array of shape {shape}: {error}") from error
    if dtype.kind == "b":
        return values.view(np.uint8).astype(
            bool
        )  # any byte that is not 0 or 1 would be a strange boolean
    if dtype.kind == "U":
        points = np.frombuffer(data, np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if ((points > 0x10FFFF) | ((points >= 0xD800) & (points <= 0xDFFF))).any():
            raise WireError(f"an array of text {shape} with characters that there are not")
    return values.astype(dtype.newbyteorder("="))


def _scalar(data: Any, dtype: np.dtype) -> np.generic:
    wanted = {"b": (bool,), "i": (int,), "u": (int,), "f": (float, int), "U": (str,), "S": (bytes,)}
    good = isinstance(data, wanted[dtype.kind]) and (dtype.kind == "b" or type(data) is not bool)
    try:
        if good:
            with np.errstate(over="ignore"):  # a float too large is infinite, as in an array
                return dtype.newbyteorder("=").type(data)
    except (OverflowError, ValueError):
        pass
    raise WireError(f"a scalar of dtype {dtype.str} is {brief(data)}; expected a value that fits")


def _msgpack() -> ModuleType:
    return require("msgpack", "to speak OpenPI")
