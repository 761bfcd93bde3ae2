# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Hand-offs are opened without a copy, once checked stay checked, and dead rings are let go."""

from __future__ import annotations

from types import SimpleNamespace as Message

import numpy as np
import pytest

from omni_ros.tensors import (
    HandleError,
    RingCache,
    SlotOverwritten,
    TensorRing,
    TensorWriter,
    fill_inline,
    open_tensor,
    open_tensors,
)


@pytest.fixture
def stage(make_ring, spec, tmp_path):
    """Return a writer of two tensors in shared memory, and a cache that reads them."""
    ring = make_ring(slots=2, slot_bytes=512)
    return TensorWriter(ring, [spec("k", (2, 3)), spec("valid", (5,))]), RingCache(folder=tmp_path)


def hand_on(writer, value):
    for array in writer.begin().values():
        array.fill(value)
    writer.commit()
    return writer.handles(Message)


def test_a_hand_off_is_read_by_name(stage):
    writer, rings = stage
    opened = open_tensors(hand_on(writer, 4), rings)
    opened.check()
    assert {name: array.shape for name, array in opened.arrays.items()} == {
        "k": (2, 3), "valid": (5,)}
    assert all((array == 4).all() for array in opened.arrays.values())


def test_the_check_fails_once_a_slot_was_written_anew(stage):
    writer, rings = stage
    opened = open_tensors(hand_on(writer, 1), rings)
    hand_on(writer, 2)
    opened.check()
    hand_on(writer, 3)
    with pytest.raises(SlotOverwritten):
        opened.check()


def test_a_single_tensor_can_be_checked_too(stage):
    writer, rings = stage
    message = Message(**vars(hand_on(writer, 1)[0]))
    open_tensor(message, rings)
    rings.check(message)
    hand_on(writer, 2)
    hand_on(writer, 3)
    with pytest.raises(SlotOverwritten):
        rings.check(message)


def test_the_same_place_is_the_same_array_each_time(stage):
    writer, rings = stage
    first = dict(open_tensors(hand_on(writer, 1), rings).arrays)
    hand_on(writer, 2)
    again = open_tensors(hand_on(writer, 3), rings).arrays
    assert all(again[name] is first[name] for name in first)
    assert (again["k"] == 3).all()


def test_a_handle_is_checked_again_where_it_differs(stage):
    writer, rings = stage
    message = hand_on(writer, 1)[0]
    open_tensor(message, rings)
    message.offset = 10**6
    with pytest.raises(HandleError):
        open_tensor(message, rings)


def test_two_tensors_of_one_name_are_refused(stage):
    writer, rings = stage
    message = hand_on(writer, 1)[0]
    with pytest.raises(HandleError, match="two tensors.*'k'"):
        open_tensors([message, message], rings)


def test_a_ring_whose_owner_closed_it_is_let_go_when_the_next_comes(make_ring, spec, tmp_path):
    rings = RingCache(folder=tmp_path)
    old, new = (TensorWriter(make_ring(), [spec("k", (2,))]) for _ in range(2))
    open_tensors(hand_on(old, 1), rings)
    old.ring.close()
    open_tensors(hand_on(new, 2), rings)
    assert rings.names == (new.ring.name,)


def test_no_more_rings_are_mapped_than_asked_for(make_ring, spec, tmp_path):
    rings = RingCache(capacity=2, folder=tmp_path)
    writers = [TensorWriter(make_ring(), [spec("k", (2,))]) for _ in range(3)]
    for writer in (*writers[:2], writers[0], writers[2]):
        open_tensors(hand_on(writer, 1), rings)
    assert rings.names == (writers[0].ring.name, writers[2].ring.name)


def test_arrays_of_a_ring_that_was_dropped_stay_valid(stage):
    writer, rings = stage
    opened = open_tensors(hand_on(writer, 6), rings)
    rings.close()
    assert rings.names == () and (opened.arrays["k"] == 6).all()


def test_a_ring_of_ones_own_is_not_closed_by_reading_it(spec):
    writer = TensorWriter(TensorRing.private(slots=2, slot_bytes=64), [spec("k", (2,))])
    rings = RingCache()
    open_tensors(hand_on(writer, 1), rings)
    rings.close()
    assert not writer.ring.gone


def test_inline_tensors_go_to_the_same_aligned_array_each_time():
    rings, arrays = RingCache(), []
    for value in (1, 2):
        message = Message()
        fill_inline(message, "k", np.full((3, 5), value, np.float32))
        arrays.append(open_tensors([message], rings).arrays["k"])
        assert (arrays[-1] == value).all()
    assert arrays[0] is arrays[1] and arrays[0].ctypes.data % 64 == 0


def test_an_inline_hand_off_needs_no_check(stage):
    writer, rings = stage
    hand_on(writer, 8)
    opened = open_tensors(writer.handles(Message, inline=True), rings)
    hand_on(writer, 9)
    hand_on(writer, 9)
    opened.check()
    assert (opened.arrays["valid"] == 8).all()


def test_ever_new_handles_do_not_fill_the_memory(make_ring, spec, tmp_path, monkeypatch):
    from omni_ros.tensors import reading

    monkeypatch.setattr(reading, "_MOST_KNOWN", 3)
    monkeypatch.setattr(reading, "_MOST_INLINE", 3)
    writer, rings = TensorWriter(make_ring(), [spec("k", (2,))]), RingCache(folder=tmp_path)
    message, inline = hand_on(writer, 1)[0], Message()
    for index in range(20):
        message.name = f"k{index}"
        fill_inline(inline, message.name, np.zeros(2, np.float32))
        open_tensors([message], rings)
        open_tensors([inline], rings)
    assert len(rings._known[writer.ring.name]) <= 3 and len(rings._inline) <= 3


def test_rings_need_no_executorch(start_python, tmp_path):
    process = start_python("""
import sys
for name in ("executorch", "torch", "rclpy"):
    sys.modules[name] = None
from pathlib import Path
from types import SimpleNamespace as Message
from omni_ros.tensors import RingCache, TensorRing, TensorWriter, open_tensors

spec = Message(name="k", dtype="float32", shape=(2,))
ring = TensorRing.create("x", slots=2, slot_bytes=64, folder=Path(sys.argv[1]))
writer = TensorWriter(ring, [spec])
writer.begin()["k"][:] = 3
writer.commit()
rings = RingCache(folder=Path(sys.argv[1]))
for inline in (False, True):
    opened = open_tensors(writer.handles(Message, inline=inline), rings)
    print(opened.arrays["k"].tolist(), flush=True)
""", tmp_path)
    assert process.communicate()[0].split("\n") == ["[3.0, 3.0]", "[3.0, 3.0]", ""]
