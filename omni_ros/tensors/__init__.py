# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors from one process to the next: bytes in shared memory, handles in messages.

The stage that writes:

    ring = TensorRing.create("prefix", slots=4, slot_bytes=TensorWriter.bytes_needed(specs))
    writer = TensorWriter(ring, specs)
    arrays = writer.begin()           # by name, in the ring: let a program write to them
    writer.commit()
    messages = writer.handles(TensorHandle)

The stage that reads:

    rings = RingCache()
    opened = open_tensors(messages, rings)
    ...                               # use opened.arrays where they lie
    opened.check()                    # SlotOverwritten: what was computed from them is void

Numpy and the standard library are all it needs.
"""

from __future__ import annotations

from omni_ros.tensors.errors import HandleError, RingError, SlotOverwritten, TensorError
from omni_ros.tensors.handle import fill_inline, fill_shared
from omni_ros.tensors.reading import OpenTensors, RingCache, open_tensor, open_tensors
from omni_ros.tensors.ring import Slot, TensorRing
from omni_ros.tensors.shared_memory import sweep
from omni_ros.tensors.writing import TensorWriter

__all__ = [
    "HandleError",
    "OpenTensors",
    "RingCache",
    "RingError",
    "Slot",
    "SlotOverwritten",
    "TensorError",
    "TensorRing",
    "TensorWriter",
    "fill_inline",
    "fill_shared",
    "open_tensor",
    "open_tensors",
    "sweep",
]
