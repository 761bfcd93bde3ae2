# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A fixed ring of slots: one process writes, others read where it lies, and nobody waits.

The writer takes the slots in turn and never asks whether someone still reads. Each slot has a word
that tells: 2 n - 1 while the n-th write of the ring is on its way to it, 2 n once it is there. A
reader knows n from the handle and compares before and after use; a slot that was overwritten in
between is noticed. See `fence.py` for why it is noticed on every machine.

Memory: a header (64 bytes), one cache line a slot with its word, then the slots' payloads, page by
page, each with room behind it that kernels may read.
"""

from __future__ import annotations

import struct
import weakref
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import numpy as np

from omni_ros.tensors import shared_memory
from omni_ros.tensors.errors import HandleError, RingError, SlotOverwritten
from omni_ros.tensors.fence import fence

_MAGIC = b"OMNIRNG1"
_HEADER = struct.Struct("<8sQQQQ")  # magic, slots, slot bytes, bytes from slot to slot, all bytes
_LINE, _PAGE = 64, 4096
#: Kernels may read a little past the end of a tensor.
_SPARE = 128
MAX_SLOTS, MAX_SLOT_BYTES = 256, 1 << 36
_PRIVATE = "private."
_private_rings: weakref.WeakValueDictionary[str, TensorRing] = weakref.WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class Slot:
    """One slot as its writer has it; always the same object for the same slot.

    :param payload: uint8 [slot bytes], aligned to 64 bytes.
    """

    index: int
    payload: np.ndarray


class TensorRing:
    """Slots in shared memory, or in this process's own; made by `create`, `attach`, `private`.

    One thread writes. Any number of threads and processes read, and cannot write.
    """

    def __init__(self, name: str, memory: np.ndarray, shape: tuple[int, int, int], *, owned: bool,
                 shared: shared_memory.SharedMemory | None = None) -> None:
        """Not to be called; see the class methods."""
        self.name, self.owned = name, owned
        self.slots, self.slot_bytes, stride = shape
        self._shared, self._written, self._closed = shared, 0, False
        self._words = memoryview(memory)[_LINE:_LINE * (1 + self.slots)].cast("Q")
        start = _payload_start(self.slots)
        own = [memory[start + i * stride:][:self.slot_bytes] for i in range(self.slots)]
        self._slots = [Slot(i, payload) for i, payload in enumerate(own)] if owned else []
        self._views = [payload.view() for payload in own]
        for view in self._views:
            view.setflags(write=False)
        self._finalizer = weakref.finalize(self, shared.close) if shared is not None else None

    @classmethod
    def create(cls, what: str, *, slots: int, slot_bytes: int,
               folder: Path = shared_memory.FOLDER) -> TensorRing:
        """Make a ring in shared memory; this process owns it, and its end removes it.

        :param what: what it carries, 1 to 40 of a-z, 0-9 and _; part of the name.
        :raises RingError: no shared memory, or too little; with need and have.
        """
        shape, size = _shape(slots, slot_bytes)
        shared = shared_memory.create(what, size, folder=folder)
        _HEADER.pack_into(shared.map, 0, _MAGIC, *shape, size)
        return cls(shared.name, np.frombuffer(shared.map, np.uint8), shape, owned=True,
                   shared=shared)

    @classmethod
    def attach(cls, name: str, *, folder: Path = shared_memory.FOLDER) -> TensorRing:
        """Map the ring of another process (or a private one of this) to read it.

        :raises HandleError: no name of a ring. :raises RingError: it is gone, foreign or damaged.
        """
        if isinstance(name, str) and name.startswith(_PRIVATE):
            ring = _private_rings.get(name)
            if ring is None:
                raise RingError(f"{name[:80]!r} is a ring of another process or was closed")
            return ring
        shared = shared_memory.attach(name, folder=folder)
        try:
            shape = _read_header(shared)
        except BaseException:
            shared.close()
            raise
        return cls(name, np.frombuffer(shared.map, np.uint8), shape, owned=False, shared=shared)

    @classmethod
    def private(cls, *, slots: int, slot_bytes: int) -> TensorRing:
        """Make a ring in this process's memory, for stages that share a process."""
        shape, size = _shape(slots, slot_bytes)
        memory = np.empty(size + _PAGE, np.uint8)
        memory = memory[-memory.ctypes.data % _PAGE:][:size]
        memory.fill(0)
        ring = cls(f"{_PRIVATE}{token_hex(8)}", memory, shape, owned=True)
        _private_rings[ring.name] = ring
        return ring

    @property
    def gone(self) -> bool:
        """True once the owner has closed it, or was found dead: nothing new will come."""
        return self._closed or (self._shared is not None and self._shared.gone)

    @property
    def is_private(self) -> bool:
        """True if it lies in this process's own memory."""
        return self._shared is None

    def memory(self, slot: int) -> np.ndarray:
        """Return a slot's bytes, uint8 [slot bytes], whatever they hold; for its writer.

        :raises RingError: closed. :raises HandleError: there is no such slot.
        """
        self._check_slot(slot)
        return self._views[slot]

    def begin(self) -> Slot:
        """Mark the next slot as being written and return it.

        A slot that is begun and never committed stays unreadable, and is taken again in its turn.
        :raises RingError: closed, or only attached.
        """
        self._check_open()
        if not self.owned:
            raise RingError(f"{self.name} was attached, which is for reading; its owner writes")
        self._written += 1
        index = self._written % self.slots
        self._words[index * (_LINE // 8)] = 2 * self._written - 1
        fence()  # the mark before the bytes
        return self._slots[index]

    def commit(self, slot: Slot) -> int:
        """Say that the slot is written; return the sequence that its handles carry.

        :raises RingError: closed, or not the slot that `begin` gave last.
        """
        self._check_open()
        if slot.index != self._written % self.slots or slot is not self._slots[slot.index]:
            raise RingError(f"{self.name}: slot {slot.index} is not the one begun last")
        fence()  # the bytes before the mark
        self._words[slot.index * (_LINE // 8)] = 2 * self._written
        return self._written

    def view(self, slot: int, sequence: int) -> np.ndarray:
        """Return a slot's bytes, uint8 [slot bytes], not to be written; the same object each time.

        :raises SlotOverwritten: it holds another write by now, or none.
        :raises HandleError: there is no such slot. :raises RingError: the ring was closed.
        """
        views = self._views
        self._check_slot(slot)
        self._compare(slot, sequence)
        fence()  # the mark before the bytes
        return views[slot]

    def check(self, slot: int, sequence: int) -> None:
        """Make sure that a slot still held this write after all that was read from it.

        :raises: what :meth:`view` raises.
        """
        self._check_slot(slot)
        fence()  # the bytes before the mark
        self._compare(slot, sequence)

    def close(self) -> None:
        """Let go; the owner also removes the name. Arrays over it stay valid for who holds them."""
        if self._closed:
            return
        self._closed = True
        _private_rings.pop(self.name, None)
        # Another thread may be looking: it finds that nothing is written, and no freed memory.
        self._words = memoryview(bytes(_LINE * self.slots)).cast("Q")
        self._slots, self._views = [], []
        if self._finalizer is not None:
            self._finalizer()

    def __enter__(self) -> TensorRing:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check_slot(self, slot: int) -> None:
        self._check_open()
        if not 0 <= slot < self.slots:
            raise HandleError(f"slot {slot} of {self.name}, which has {self.slots}")

    def _compare(self, slot: int, sequence: int) -> None:
        word = self._words[slot * (_LINE // 8)]
        if word != 2 * sequence or word == 0:
            state = f"is taking write {word // 2 + 1}" if word % 2 else f"is at write {word // 2}"
            raise SlotOverwritten(
                f"slot {slot} of {self.name} {state}, the handle is of write {sequence}; if that "
                "happens often, raise ring_slots"
            )

    def _check_open(self) -> None:
        if self._closed:
            raise RingError(f"{self.name} was closed")


def _payload_start(slots: int) -> int:
    return _up(_LINE * (1 + slots), _PAGE)


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _shape(slots: int, slot_bytes: int) -> tuple[tuple[int, int, int], int]:
    """Return (slots, slot bytes, bytes from slot to slot) and the bytes of all."""
    if not 2 <= slots <= MAX_SLOTS or not 1 <= slot_bytes <= MAX_SLOT_BYTES:
        raise HandleError(
            f"a ring of {slots} slots of {slot_bytes} bytes; expected 2 to {MAX_SLOTS} slots of 1 "
            f"to {MAX_SLOT_BYTES} bytes"
        )
    stride = _up(slot_bytes + _SPARE, _PAGE)
    return (slots, slot_bytes, stride), _payload_start(slots) + slots * stride


def _read_header(shared: shared_memory.SharedMemory) -> tuple[int, int, int]:
    if shared.size < _HEADER.size:
        raise RingError(f"{shared.name} has {shared.size} bytes, too few for a ring")
    magic, slots, slot_bytes, stride, size = _HEADER.unpack_from(shared.map, 0)
    try:
        fits = magic == _MAGIC and _shape(slots, slot_bytes) == ((slots, slot_bytes, stride), size)
    except HandleError:
        fits = False
    if not fits or size != shared.size:
        raise RingError(
            f"{shared.name} is no ring of this version: {shared.size} bytes that begin with "
            f"{magic!r}; run the same version of omni_ros everywhere on this machine"
        )
    return slots, slot_bytes, stride
