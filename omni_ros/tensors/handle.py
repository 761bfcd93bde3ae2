# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A tensor's handle: the fields of omni_ros/msg/TensorHandle, written and checked.

Works on anything with those fields, so it needs no ROS. What comes in may be from anyone who can
publish: every field is checked before memory is looked at.
"""

from __future__ import annotations

import array
import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from omni_ros.tensors.errors import HandleError
from omni_ros.tensors.ring import TensorRing

#: TensorHandle.transport
SHARED_MEMORY, INLINE = 1, 2
#: TensorHandle.dtype: as numpy has it. It has no bfloat16: those are the bits.
DTYPES = {
    1: np.dtype(np.float32),
    2: np.dtype(np.float16),
    3: np.dtype(np.uint16),
    4: np.dtype(np.int64),
    5: np.dtype(np.int32),
    6: np.dtype(np.uint8),
    7: np.dtype(np.int8),
    8: np.dtype(np.bool_),
    9: np.dtype(np.float64),
}
_CODES = {dtype: code for code, dtype in DTYPES.items()}
MAX_RANK, MAX_NAME = 8, 200


def dtype_code(dtype: np.dtype | str) -> int:
    """Return TensorHandle.dtype of a dtype; uint16 means bfloat16.

    :raises HandleError: there is none.
    """
    code = _CODES.get(np.dtype("uint16" if dtype == "bfloat16" else dtype))
    if code is None:
        known = ", ".join(str(known) for known in _CODES)
        raise HandleError(f"tensors of {dtype} have no handle; expected one of {known}")
    return code


def fill_shared(message: Any, name: str, tensor: np.ndarray, ring: TensorRing, slot: int,
                sequence: int) -> None:
    """Make a message the handle of a tensor that lies in a slot.

    Header, observation_seq and timings are the caller's.
    :param tensor: C-contiguous, within the slot's payload.
    :raises HandleError: it is not, or its dtype has no handle.
    """
    payload = ring.memory(slot)
    offset = _address(tensor) - _address(payload)
    if not tensor.flags.c_contiguous or not 0 <= offset <= payload.nbytes - tensor.nbytes:
        raise HandleError(f"{name} does not lie whole in slot {slot} of {ring.name}")
    message.transport = SHARED_MEMORY
    _fill(message, name, tensor)
    message.ring, message.slot, message.sequence = ring.name, slot, sequence
    message.offset = offset
    message.data = array.array("B")


def fill_inline(message: Any, name: str, tensor: np.ndarray) -> None:
    """Make a message carry a tensor's bytes, for another machine.

    Header, observation_seq and timings are the caller's.
    :raises HandleError: its dtype has no handle.
    """
    tensor = np.asarray(tensor, order="C")
    message.transport = INLINE
    _fill(message, name, tensor)
    message.ring, message.slot, message.sequence, message.offset = "", 0, 0, 0
    # rclpy takes an array.array as it is, but checks the elements of anything else one by one.
    data = array.array("B")
    data.frombytes(tensor.reshape(-1).view(np.uint8).data)
    message.data = data


def _fill(message: Any, name: str, tensor: np.ndarray) -> None:
    message.name, message.nbytes = name, tensor.nbytes
    message.dtype = dtype_code(tensor.dtype)
    message.shape = array.array("Q", tensor.shape)


def _address(tensor: np.ndarray) -> int:
    return tensor.__array_interface__["data"][0]


@dataclass(frozen=True)
class Handle:
    """What a handle says of its tensor, once it makes sense."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    nbytes: int


def read_handle(message: Any) -> Handle:
    """Check what a handle says of its tensor, apart from where that lies.

    :raises HandleError: something does not fit; with both sides.
    """
    name = message.name
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise HandleError(
            f"a tensor is named {str(name)[:40]!r}; expected 1 to {MAX_NAME} characters"
        )
    dtype = DTYPES.get(message.dtype)
    if dtype is None:
        known = ", ".join(f"{code}: {dtype}" for code, dtype in DTYPES.items())
        raise HandleError(f"{name!r} has dtype {message.dtype!r}; expected one of {known}")
    if len(message.shape) > MAX_RANK:
        raise HandleError(
            f"{name!r} has {len(message.shape)} dimensions; expected at most {MAX_RANK}"
        )
    shape = tuple(whole(size, f"a dimension of {name!r}") for size in message.shape)
    nbytes = whole(message.nbytes, f"nbytes of {name!r}")
    if 0 in shape or math.prod(shape) * dtype.itemsize != nbytes:
        raise HandleError(
            f"{name!r} is {dtype} {list(shape)}, {math.prod(shape) * dtype.itemsize} bytes, and "
            f"says {nbytes}; expected the same, above 0"
        )
    return Handle(name, dtype, shape, nbytes)


def locate(handle: Handle, offset: int, payload: np.ndarray, where: str) -> np.ndarray:
    """Return the tensor in a slot's bytes, as a view.

    :raises HandleError: it does not lie in them, or not where such numbers can.
    """
    offset = whole(offset, f"offset of {handle.name!r}")
    if offset + handle.nbytes > payload.nbytes:
        raise HandleError(
            f"{handle.name!r} is {handle.nbytes} bytes from {offset} on in {where}, which has "
            f"{payload.nbytes}"
        )
    if offset % handle.dtype.itemsize:
        raise HandleError(
            f"{handle.name!r} begins at byte {offset} of {where}; expected a multiple of "
            f"{handle.dtype.itemsize} for {handle.dtype}, best of 64"
        )
    return payload[offset:offset + handle.nbytes].view(handle.dtype).reshape(handle.shape)


def whole(value: Any, what: str) -> int:
    """Return a number as an int. :raises HandleError: it is none, or negative."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise HandleError(f"{what} is {str(value)[:40]!r}; expected an integer of 0 or more")
    return number
