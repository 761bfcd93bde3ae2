# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A ring hands out slots in turn; one that was overwritten is never taken for a whole one."""

from __future__ import annotations

import gc
import mmap
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.tensors import HandleError, RingError, SlotOverwritten, TensorRing


def write(ring, value):
    slot = ring.begin()
    slot.payload[:] = value
    return slot.index, ring.commit(slot)


def test_what_is_written_is_read_by_who_attaches(make_ring, tmp_path):
    ring = make_ring()
    place = write(ring, 7)
    with TensorRing.attach(ring.name, folder=tmp_path) as reader:
        assert (reader.view(*place) == 7).all()
        reader.check(*place)


def test_a_reader_cannot_write(make_ring, tmp_path):
    ring = make_ring()
    place = write(ring, 7)
    with TensorRing.attach(ring.name, folder=tmp_path) as reader:
        assert not reader.view(*place).flags.writeable
        with pytest.raises(RingError, match="for reading"):
            reader.begin()


def test_a_payload_is_aligned_and_has_room_behind_it_that_can_be_read(make_ring):
    ring = make_ring(slots=2, slot_bytes=1000)
    payloads = [ring.begin().payload for _ in range(2)]
    assert all(payload.ctypes.data % 64 == 0 and payload.nbytes == 1000 for payload in payloads)
    low, high = sorted(payload.ctypes.data for payload in payloads)
    assert high - low >= 1000 + 128


def test_a_slot_is_the_same_object_in_each_turn(make_ring):
    ring = make_ring(slots=2)
    first = ring.begin()
    ring.begin()
    assert ring.begin() is first


def test_a_slot_that_is_being_written_cannot_be_viewed(make_ring):
    ring = make_ring(slots=2)
    index, sequence = write(ring, 1)
    write(ring, 2)
    assert ring.begin().index == index
    with pytest.raises(SlotOverwritten, match=f"taking write 3.*of write {sequence}"):
        ring.view(index, sequence)


def test_a_slot_begun_while_it_is_read_fails_the_check(make_ring):
    ring = make_ring(slots=2)
    place = write(ring, 1)
    ring.view(*place)
    write(ring, 2)
    ring.check(*place)
    ring.begin()
    with pytest.raises(SlotOverwritten):
        ring.check(*place)


def test_a_slot_written_anew_fails_the_check_with_both_numbers(make_ring):
    ring = make_ring(slots=2)
    index, sequence = write(ring, 1)
    write(ring, 2)
    write(ring, 3)
    with pytest.raises(SlotOverwritten, match="at write 3, the handle is of write 1"):
        ring.check(index, sequence)


def test_an_abandoned_write_is_never_readable(make_ring):
    ring = make_ring(slots=2)
    slot = ring.begin()
    with pytest.raises(SlotOverwritten):
        ring.view(slot.index, 1)
    write(ring, 2)
    place = write(ring, 3)
    assert place == (slot.index, 3)
    ring.check(*place)


def test_only_the_slot_begun_last_can_be_committed(make_ring):
    ring = make_ring(slots=2)
    old = ring.begin()
    ring.begin()
    with pytest.raises(RingError, match="not the one begun last"):
        ring.commit(old)


@pytest.mark.parametrize("sequence", [0, 1, -1, 2**64 - 1])
def test_a_slot_that_was_never_written_holds_nothing(make_ring, sequence):
    with pytest.raises(SlotOverwritten):
        make_ring().view(1, sequence)


@pytest.mark.parametrize("slot", [-1, 3, 2**32 - 1])
def test_a_slot_outside_the_ring_is_refused(make_ring, slot):
    ring = make_ring(slots=3)
    for function in (ring.view, ring.check):
        with pytest.raises(HandleError, match=f"slot {slot} .*has 3"):
            function(slot, 1)


@pytest.mark.parametrize("wrong", [
    {"slots": 1}, {"slots": 257}, {"slot_bytes": 0}, {"slot_bytes": -5}, {"slot_bytes": 2**40},
])
def test_impossible_sizes_are_refused(wrong):
    with pytest.raises(HandleError, match="expected 2 to 256 slots"):
        TensorRing.private(**{"slots": 2, "slot_bytes": 8, **wrong})


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.integers(2, 5), st.lists(
    st.one_of(
        st.just("begin"), st.just("commit"), st.tuples(st.integers(0, 4), st.integers(0, 12))),
    max_size=60,
))
def test_a_view_succeeds_exactly_while_the_slot_holds_that_write(slots, actions):
    ring = TensorRing.private(slots=slots, slot_bytes=8)
    held, begun, count = {}, None, 0
    for action in actions:
        if action == "begin":
            begun, count = ring.begin(), count + 1
            assert begun.payload.nbytes == 8
            held.pop(begun.index, None)
        elif action == "commit":
            if begun is not None:
                begun.payload[0] = count
                assert ring.commit(begun) == count
                held[begun.index], begun = count, None
        elif action[0] < slots:
            if held.get(action[0]) == action[1]:
                assert ring.view(*action)[0] == action[1]
                ring.check(*action)
            else:
                for function in (ring.view, ring.check):
                    with pytest.raises(SlotOverwritten):
                        function(*action)


def test_a_private_ring_is_found_by_name_in_its_process():
    ring = TensorRing.private(slots=2, slot_bytes=16)
    place = write(ring, 9)
    found = TensorRing.attach(ring.name)
    assert (found.view(*place) == 9).all() and not found.view(*place).flags.writeable


def test_a_private_ring_is_not_found_once_it_is_closed():
    ring = TensorRing.private(slots=2, slot_bytes=16)
    ring.close()
    with pytest.raises(RingError, match="another process or was closed"):
        TensorRing.attach(ring.name)


def test_a_closed_ring_hands_out_nothing_and_its_arrays_stay_valid(make_ring):
    ring = make_ring()
    place = write(ring, 5)
    payload = ring.view(*place)
    ring.close()
    gc.collect()
    assert (payload == 5).all() and ring.gone
    for function in (ring.begin, lambda: ring.view(*place), lambda: ring.check(*place)):
        with pytest.raises(RingError, match="closed"):
            function()


def test_closing_twice_does_nothing(make_ring):
    ring = make_ring()
    ring.close()
    ring.close()


def test_a_ring_that_is_let_go_leaves_no_mapping_and_no_descriptor(make_ring, tmp_path):
    def count():
        gc.collect()
        with open("/proc/self/maps", encoding="utf-8") as maps:
            mapped = sum(str(tmp_path) in line for line in maps)
        return mapped, len(os.listdir("/proc/self/fd"))

    before = count()
    ring = make_ring()
    place = write(ring, 1)
    reader = TensorRing.attach(ring.name, folder=tmp_path)
    reader.view(*place)
    assert count()[0] == before[0] + 2
    reader.close()
    ring.close()
    assert count() == before


def spoil(path, offset, data):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[offset:offset + len(data)] = data


@pytest.mark.parametrize(("offset", "data"), [
    (0, b"OMNIRNG0"), (8, struct.pack("<Q", 200)), (8, struct.pack("<Q", 0)),
    (16, struct.pack("<Q", 2**63)), (24, struct.pack("<Q", 64)), (32, struct.pack("<Q", 2**20)),
])
def test_a_file_that_is_no_ring_of_ours_is_refused(make_ring, tmp_path, offset, data):
    ring = make_ring()
    spoil(tmp_path / ring.name, offset, data)
    with pytest.raises(RingError, match="no ring of this version"):
        TensorRing.attach(ring.name, folder=tmp_path)


@pytest.mark.parametrize("size", [1, 39, 4096])
def test_a_file_of_another_size_than_its_header_says_is_refused(make_ring, tmp_path, size):
    ring = make_ring()
    os.truncate(tmp_path / ring.name, size)
    with pytest.raises(RingError, match=f"{size} bytes"):
        TensorRing.attach(ring.name, folder=tmp_path)


def test_slots_do_not_overlap():
    ring = TensorRing.private(slots=4, slot_bytes=5000)
    places = [write(ring, value) for value in range(4)]
    for value, place in enumerate(places):
        assert np.unique(ring.view(*place)).tolist() == [value]
