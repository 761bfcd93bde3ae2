# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From handles to arrays: rings are mapped once, and what was checked once is not checked again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.tensors import shared_memory
from omni_ros.tensors.errors import HandleError
from omni_ros.tensors.handle import INLINE, SHARED_MEMORY, locate, read_handle, whole
from omni_ros.tensors.ring import TensorRing

#: Whoever sends ever new handles must not fill the memory with what is known of them.
_MOST_KNOWN = 4096
_MOST_INLINE = 256


class RingCache:
    """The rings that a stage reads from, mapped at first sight.

    For one thread. Rings whose owner is gone are let go when another one is mapped.
    """

    def __init__(self, capacity: int = 4, *, folder: Path = shared_memory.FOLDER) -> None:
        """:param capacity: rings at once; the one not used for longest makes room."""
        self._capacity, self._folder = capacity, folder
        self._rings: dict[str, TensorRing] = {}
        self._known: dict[str, dict[tuple, np.ndarray]] = {}
        self._inline: dict[str, np.ndarray] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rings mapped now, the one used last at the end."""
        return tuple(self._rings)

    def get(self, name: str) -> TensorRing:
        """Return a ring. :raises RingError, HandleError: see `TensorRing.attach`."""
        if not isinstance(name, str):
            raise HandleError(f"the name of a ring is {str(name)[:40]!r}; expected text")
        ring = self._rings.pop(name, None)
        if ring is None:
            for other in [other for other, ring in self._rings.items() if ring.gone]:
                self.drop(other)
            ring = TensorRing.attach(name, folder=self._folder)
            while len(self._rings) >= self._capacity:
                self.drop(next(iter(self._rings)))
        self._rings[name] = ring  # at the end: used last
        return ring

    def drop(self, name: str) -> None:
        """Let a ring go."""
        self._known.pop(name, None)
        ring = self._rings.pop(name, None)
        if ring is not None and not ring.owned:
            ring.close()

    def close(self) -> None:
        """Let all go."""
        for name in self.names:
            self.drop(name)
        self._inline.clear()

    def check(self, message: Any) -> None:
        """Make sure that a handle's slot still held its tensor after all that was read from it.

        :raises TensorError: it did not, or the ring is closed.
        """
        if message.transport == SHARED_MEMORY:
            self.get(message.ring).check(message.slot, message.sequence)

    def _shared(self, message: Any) -> np.ndarray:
        ring = self.get(message.ring)
        payload = ring.view(whole(message.slot, "slot"), whole(message.sequence, "sequence"))
        known = self._known.setdefault(message.ring, {})
        key = (message.slot, message.offset, message.nbytes, message.dtype, message.name,
               tuple(message.shape))
        tensor = known.get(key)
        if tensor is None:
            where = f"slot {message.slot} of {message.ring}"
            tensor = locate(read_handle(message), message.offset, payload, where)
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[key] = tensor
        return tensor

    def _copied(self, message: Any) -> np.ndarray:
        from omni_ros.programs.tensors import zeros  # aligned, with room behind that kernels read

        handle = read_handle(message)
        try:
            data = np.frombuffer(message.data, np.uint8) if len(message.data) else None
        except (TypeError, ValueError, BufferError) as error:
            raise HandleError(f"data of {handle.name!r} is no bytes ({error})") from error
        if data is None or data.size != handle.nbytes:
            have = 0 if data is None else data.size
            raise HandleError(
                f"{handle.name!r} carries {have} bytes inline and says {handle.nbytes}; expected "
                "the same"
            )
        tensor = self._inline.get(handle.name)
        if tensor is None or (tensor.dtype, tensor.shape) != (handle.dtype, handle.shape):
            if len(self._inline) >= _MOST_INLINE:
                self._inline.clear()
            tensor = self._inline[handle.name] = zeros(handle.shape, handle.dtype)
        np.copyto(tensor, data.view(handle.dtype).reshape(handle.shape))
        return tensor


def open_tensor(message: Any, rings: RingCache) -> np.ndarray:
    """Return the tensor of a handle: a view of the ring, or a copy of the bytes that came inline.

    After use ask `rings.check(message)`. An array is the same object each time for the same place;
    a copy is overwritten when the next tensor of that name is opened.
    :raises HandleError: the handle does not make sense. :raises RingError: its ring is gone.
    :raises SlotOverwritten: its slot holds another write by now.
    """
    if message.transport == SHARED_MEMORY:
        return rings._shared(message)
    if message.transport == INLINE:
        return rings._copied(message)
    raise HandleError(
        f"transport is {message.transport!r}; expected {SHARED_MEMORY} (shared memory) or {INLINE} "
        "(inline)"
    )


@dataclass(frozen=True)
class OpenTensors:
    """Tensors that were opened together.

    :param arrays: by name; not to be written. :param slots: (ring, slot, sequence) of each slot
        that they lie in.
    """

    arrays: Mapping[str, np.ndarray]
    slots: tuple[tuple[TensorRing, int, int], ...]

    def check(self) -> None:
        """Make sure that all of them were whole after all that was read.

        :raises SlotOverwritten: a slot was overwritten: what was computed is void.
        """
        for ring, slot, sequence in self.slots:
            ring.check(slot, sequence)


def open_tensors(messages: Iterable[Any], rings: RingCache) -> OpenTensors:
    """Open the handles of one hand-off.

    :raises TensorError: as for :func:`open_tensor`, or two have one name.
    """
    arrays: dict[str, np.ndarray] = {}
    slots: dict[tuple, tuple[TensorRing, int, int]] = {}
    for message in messages:
        if not isinstance(message.name, str):
            raise HandleError(f"a tensor is named {str(message.name)[:40]!r}; expected text")
        if message.name in arrays:
            raise HandleError(f"two tensors of one hand-off are named {message.name[:40]!r}")
        arrays[message.name] = open_tensor(message, rings)
        if message.transport == SHARED_MEMORY:
            place = message.ring, message.slot, message.sequence
            if place not in slots:
                slots[place] = rings.get(message.ring), message.slot, message.sequence
    return OpenTensors(arrays, tuple(slots.values()))
