# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A set of tensors has its place in each slot, and handles that say where."""

from __future__ import annotations

from types import SimpleNamespace as Message

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.tensors import (
    HandleError,
    RingCache,
    RingError,
    TensorRing,
    TensorWriter,
    open_tensors,
)
from omni_ros.tensors.handle import DTYPES


@pytest.fixture
def writer(make_ring, spec):
    return TensorWriter(make_ring(slots=2), [spec("k", (2, 3)), spec("mask", (5,), "bool")])


def write(writer, value):
    arrays = writer.begin()
    for array in arrays.values():
        array.fill(value)
    writer.commit()
    return arrays


def test_the_arrays_lie_in_the_slot_and_are_aligned(writer):
    arrays = writer.begin()
    payload = writer.ring.memory(1)
    for array in arrays.values():
        assert np.shares_memory(array, payload) and array.ctypes.data % 64 == 0
        assert array.flags.writeable


def test_a_slot_has_the_same_arrays_in_each_turn(writer):
    first = write(writer, 1)
    assert write(writer, 1) is not first
    assert write(writer, 1) is first


def test_handles_come_in_the_order_of_the_tensors_or_as_asked_for(writer):
    write(writer, 1)
    assert [message.name for message in writer.handles(Message)] == ["k", "mask"]
    assert [message.name for message in writer.handles(Message, ["mask"])] == ["mask"]


def test_handles_of_a_slot_are_made_once_and_carry_the_new_sequence(writer):
    write(writer, 1)
    first = writer.handles(Message)
    assert {message.sequence for message in first} == {1}
    write(writer, 1)
    assert writer.handles(Message) is not first
    write(writer, 1)
    assert writer.handles(Message) is first
    assert {message.sequence for message in first} == {3}


def test_handles_that_are_passed_on_by_reference_are_never_changed(spec):
    writer = TensorWriter(TensorRing.private(slots=2, slot_bytes=64), [spec("k", (2,))])
    write(writer, 1)
    held = writer.handles(Message)
    write(writer, 2)
    write(writer, 3)
    writer.handles(Message)
    assert held[0].sequence == 1


def test_there_are_no_handles_before_the_commit(writer):
    for step in (lambda: None, writer.begin):
        step()
        with pytest.raises(RingError, match="nothing was committed"):
            writer.handles(Message)


def test_nothing_can_be_committed_before_it_was_begun(writer):
    with pytest.raises(RingError, match="begin"):
        writer.commit()


def test_an_unknown_tensor_is_refused_with_those_there_are(writer):
    write(writer, 1)
    with pytest.raises(HandleError, match="'v'; there are k, mask"):
        writer.handles(Message, ["v"])


def test_tensors_that_do_not_fit_into_a_slot_are_refused_with_both_sizes(make_ring, spec):
    with pytest.raises(HandleError, match="400 bytes.*has 256"):
        TensorWriter(make_ring(slot_bytes=256), [spec("k", (100,))])


def test_two_tensors_of_one_name_are_refused(make_ring, spec):
    with pytest.raises(HandleError, match="two tensors are named 'k'"):
        TensorWriter(make_ring(), [spec("k", (1,)), spec("k", (2,))])


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.tuples(
    st.lists(st.integers(1, 5), max_size=4), st.sampled_from([str(d) for d in DTYPES.values()])
), min_size=1, max_size=6), st.booleans())
def test_any_set_of_tensors_comes_through_whole_and_apart(tensors, inline):
    specs = [Message(name=f"t{i}", shape=tuple(shape), dtype=dtype)
             for i, (shape, dtype) in enumerate(tensors)]
    ring = TensorRing.private(slots=2, slot_bytes=TensorWriter.bytes_needed(specs))
    writer = TensorWriter(ring, specs)
    for index, array in enumerate(writer.begin().values()):
        array.fill(index % 2 if array.dtype == bool else index)
    writer.commit()
    opened = open_tensors(writer.handles(Message, inline=inline), RingCache())
    opened.check()
    for index, spec in enumerate(specs):
        array = opened.arrays[spec.name]
        assert (array.shape, str(array.dtype)) == (spec.shape, spec.dtype)
        assert (array == (index % 2 if array.dtype == bool else index)).all()
