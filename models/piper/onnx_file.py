# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The weights in an ONNX file, read without the onnx package.

Only stored tensors and the names of a convolution's inputs are wanted, which is a page of
protobuf's wire format; the package would bring a compiler of graphs and four further packages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..common.errors import CheckpointError

#: Field numbers of onnx.proto3.
_GRAPH = 7
_NODE, _INITIALIZER = 1, 5
_NODE_INPUT, _NODE_OP = 1, 4
_DIMS, _DTYPE, _NAME, _RAW = 1, 2, 8, 9
_FLOAT = 1


@dataclass(frozen=True)
class OnnxWeights:
    """Tensors by name, float32.

    A weight that the exporter folded (weight normalisation) has lost its name; then the bias of the
    same convolution tells what it was, and it stands here under the name it had.
    """

    path: Path
    tensors: dict[str, np.ndarray]

    def get(self, name: str) -> np.ndarray:
        """Return a tensor. :raises CheckpointError: there is none of this name."""
        if name not in self.tensors:
            raise CheckpointError(
                f"{self.path} has no tensor {name}: expected a Piper voice of medium quality with "
                "one speaker"
            )
        return self.tensors[name]


def read_weights(path: Path) -> OnnxWeights:
    """Read the float tensors of an ONNX file.

    :raises CheckpointError: it cannot be read, or is no such file.
    """
    try:
        data = memoryview(path.read_bytes())
        graph = next((value for field, value in fields(data) if field == _GRAPH), None)
        if graph is None:
            raise ValueError("it holds no graph")
        tensors: dict[str, np.ndarray] = {}
        biases: dict[str, str] = {}
        for field, value in fields(graph):
            if field == _INITIALIZER:
                name, tensor = _tensor(value)
                if tensor is not None:
                    tensors[name] = tensor
            elif field == _NODE:
                inputs = [bytes(v).decode() for f, v in fields(value) if f == _NODE_INPUT]
                kind = [bytes(v) for f, v in fields(value) if f == _NODE_OP]
                if kind == [b"Conv"] and len(inputs) == 3:
                    biases[inputs[1]] = inputs[2]
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None
    except (ValueError, IndexError, TypeError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{path} is no readable ONNX file ({error}); fetch it again"
        ) from None
    for weight, bias in biases.items():
        if weight in tensors and weight.startswith("onnx::") and bias.endswith(".bias"):
            tensors[bias.removesuffix("bias") + "weight"] = tensors.pop(weight)
    return OnnxWeights(path, tensors)


def fields(data: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    """Yield (field number, value) of a message; an int for a varint, else the bytes.

    :raises ValueError: it is no message.
    """
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        kind = key & 7
        if kind == 0:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"a field of kind {kind} at byte {position}")
        length = {1: 8, 5: 4}.get(kind, 0)
        if kind == 2:
            length, position = _varint(data, position)
        if position + length > end:
            raise ValueError(f"it ends within a field of {length} bytes")
        yield key >> 3, data[position:position + length]
        position += length


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError(f"a number without an end at byte {position}")


def _tensor(data: memoryview) -> tuple[str, np.ndarray | None]:
    """Return a stored tensor's name, and its values if they are float32."""
    shape: list[int] = []
    name, kind, raw = "", 0, None
    for field, value in fields(data):
        if field == _DIMS:
            shape += [value] if isinstance(value, int) else _packed(value)
        elif field == _DTYPE and isinstance(value, int):
            kind = value
        elif field == _NAME and isinstance(value, memoryview):
            name = bytes(value).decode()
        elif field == _RAW:
            raw = value
    if kind != _FLOAT or raw is None:
        return name, None
    return name, np.frombuffer(raw, "<f4").reshape(shape).astype(np.float32)


def _packed(data: memoryview) -> list[int]:
    values, position = [], 0
    while position < len(data):
        value, position = _varint(data, position)
        values.append(value)
    return values
