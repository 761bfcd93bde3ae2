# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a program's inputs and outputs look like, and arrays that fit them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from omni_ros.programs.errors import ProgramError
from omni_ros.programs.native import NativeTensor

#: ExecuTorch's ScalarType by numpy dtype name, as far as both know it.
DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    11: "bool",
}

_ALIGNMENT = 64
#: Kernels may read a little past the end of an input.
_SPARE = 128


@dataclass(frozen=True)
class TensorSpec:
    """One input or output.

    :param name: from whoever loaded the program; a file itself has no names.
    :param shape: sizes, C order.
    :param dtype: numpy's name, for example "float32".
    """

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Size of the data in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} {list(self.shape)}"


def spec_of(tensor: NativeTensor, name: str, where: str) -> TensorSpec:
    """Translate the description that the native library gives.

    :raises ProgramError: the dtype is one that numpy does not have.
    """
    if tensor.dtype not in DTYPES:
        raise ProgramError(
            f"{where}: {name} has ExecuTorch scalar type {tensor.dtype}, expected one of "
            f"{', '.join(DTYPES.values())}; export it with another dtype"
        )
    return TensorSpec(name, tuple(tensor.sizes[: tensor.rank]), DTYPES[tensor.dtype])


def zeros(shape: tuple[int, ...], dtype: str | np.dtype) -> np.ndarray:
    """Return an array of zeros for a program to read or write: aligned, with room after its end.

    Its pages are touched here, so that none is missing when it is first used.
    """
    dtype = np.dtype(dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + _ALIGNMENT + _SPARE, np.uint8)
    raw[...] = 0
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + nbytes].view(dtype).reshape(shape)


def check_array(array: np.ndarray, spec: TensorSpec, where: str) -> None:
    """Check that an array can stand for a tensor as it lies.

    :raises ProgramError: another type, dtype, shape or layout; both sides are named.
    """
    if not isinstance(array, np.ndarray):
        raise ProgramError(
            f"{where}: {spec.name} was given a {type(array).__name__}, expected a numpy array"
        )
    if array.dtype != np.dtype(spec.dtype):
        raise ProgramError(
            f"{where}: {spec.name} was given dtype {array.dtype}, expected {spec.dtype}"
        )
    if array.shape != spec.shape:
        raise ProgramError(
            f"{where}: {spec.name} was given shape {list(array.shape)}, "
            f"expected {list(spec.shape)}"
        )
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ProgramError(
            f"{where}: {spec.name} was given an array with strides {list(array.strides)}, expected "
            f"a C-contiguous, aligned one; copy into omni_ros.programs.zeros({spec.shape}, "
            f"{spec.dtype!r})"
        )
