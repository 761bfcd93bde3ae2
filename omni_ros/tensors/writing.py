# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A set of tensors written to a ring, the same set each time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from omni_ros.tensors.errors import HandleError, RingError
from omni_ros.tensors.handle import DTYPES, dtype_code, fill_inline, fill_shared
from omni_ros.tensors.ring import Slot, TensorRing

_ALIGNMENT = 64


class Described(Protocol):
    """What is to be known of a tensor; a program's inputs and outputs are described so."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class TensorWriter:
    """Gives a program the place in the next slot to write to, and the handles that say where.

    For one thread.
    """

    def __init__(self, ring: TensorRing, tensors: Iterable[Described]) -> None:
        """
        :param tensors: in the order of the handles.
        :raises HandleError: they do not fit into a slot, or two have one name.
        """
        self.ring = ring
        self._places, size = _lay_out(tensors)
        if size > ring.slot_bytes:
            raise HandleError(
                f"{len(self._places)} tensors take {size} bytes; a slot of {ring.name} has "
                f"{ring.slot_bytes}. Make the ring with TensorWriter.bytes_needed"
            )
        self._arrays: dict[int, dict[str, np.ndarray]] = {}
        self._messages: dict[tuple, list[Any]] = {}
        self._slot: Slot | None = None
        self._sequence = 0

    @staticmethod
    def bytes_needed(tensors: Iterable[Described]) -> int:
        """Return the bytes that a slot for these tensors needs."""
        return _lay_out(tensors)[1]

    def begin(self) -> Mapping[str, np.ndarray]:
        """Return the next slot's arrays by name, to be written; whole only once committed.

        For the same slot they are always the same objects. :raises RingError: the ring was closed.
        """
        self._slot, self._sequence = self.ring.begin(), 0
        arrays = self._arrays.get(self._slot.index)
        if arrays is None:
            payload = self._slot.payload
            arrays = self._arrays[self._slot.index] = {
                name: payload[offset:offset + nbytes].view(dtype).reshape(shape)
                for name, (offset, nbytes, dtype, shape) in self._places.items()
            }
        return arrays

    def commit(self) -> int:
        """Say that all is written; return the sequence. :raises RingError: nothing was begun."""
        if self._slot is None:
            raise RingError(f"{self.ring.name}: nothing was begun; call begin() before commit()")
        self._sequence = self.ring.commit(self._slot)
        return self._sequence

    def handles(self, make: Callable[[], Any], names: Sequence[str] | None = None, *,
                inline: bool = False) -> list[Any]:
        """Return the handles of what was committed last.

        Handles into shared memory are made once a slot, and only their sequence changes: publish
        them before the slot's next turn. All others are new.
        :param make: makes an empty TensorHandle. :param names: which, default all.
        :param inline: put the bytes into the messages, for another machine.
        :raises HandleError: unknown name. :raises RingError: nothing was committed.
        """
        if self._slot is None or not self._sequence:
            raise RingError(f"{self.ring.name}: nothing was committed, so there are no handles")
        names = tuple(self._places) if names is None else tuple(names)
        unknown = [name for name in names if name not in self._places]
        if unknown:
            raise HandleError(f"no tensor {unknown[0]!r}; there are {', '.join(self._places)}")
        arrays, index = self._arrays[self._slot.index], self._slot.index
        key = index, names, make
        messages = None if inline else self._messages.get(key)
        if messages is not None:
            for message in messages:
                message.sequence = self._sequence
            return messages
        messages = [make() for _ in names]
        for name, message in zip(names, messages):
            if inline:
                fill_inline(message, name, arrays[name])
            else:
                fill_shared(message, name, arrays[name], self.ring, index, self._sequence)
        if not inline and not self.ring.is_private:  # those are passed on by reference
            self._messages[key] = messages
        return messages


def _lay_out(tensors: Iterable[Described]) -> tuple[dict[str, tuple], int]:
    """Return (offset, bytes, dtype, shape) by name, and the bytes of all."""
    places: dict[str, tuple] = {}
    end = 0
    for tensor in tensors:
        if tensor.name in places:
            raise HandleError(f"two tensors are named {tensor.name!r}")
        dtype, shape = DTYPES[dtype_code(tensor.dtype)], tuple(tensor.shape)
        offset = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = offset + math.prod(shape) * dtype.itemsize
        places[tensor.name] = (offset, end - offset, dtype, shape)
    return places, max(end, 1)
