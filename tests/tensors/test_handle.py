# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Handles say all there is to know of a tensor, and what they say is not believed."""

from __future__ import annotations

import array
import re
from pathlib import Path
from types import SimpleNamespace as Message

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.tensors import (
    HandleError,
    RingCache,
    RingError,
    SlotOverwritten,
    TensorError,
    TensorRing,
    fill_inline,
    fill_shared,
    open_tensor,
    open_tensors,
)
from omni_ros.tensors.handle import DTYPES, INLINE, SHARED_MEMORY, dtype_code

DEFINITION = Path(__file__).resolve().parents[2] / "msg" / "TensorHandle.msg"


@pytest.fixture
def ring():
    with TensorRing.private(slots=3, slot_bytes=4096) as ring:
        yield ring


def shared(ring, values=(1.0, 2.0, 3.0), *, name="x", at=64):
    values = np.asarray(values, np.float32)
    slot = ring.begin()
    tensor = slot.payload[at:at + values.nbytes].view(np.float32).reshape(values.shape)
    tensor[...] = values
    message = Message()
    fill_shared(message, name, tensor, ring, slot.index, ring.commit(slot))
    return message


def test_the_codes_are_those_of_the_message():
    text = DEFINITION.read_text(encoding="utf-8")
    codes = {int(code): name for name, code in re.findall(r"DTYPE_(\w+)=(\d+)", text)}
    ours = {code: str(dtype).upper() for code, dtype in DTYPES.items()}
    assert codes == {**ours, 3: "BFLOAT16"}
    transports = dict(re.findall(r"TRANSPORT_(\w+)=(\d+)", text))
    assert transports == {"SHARED_MEMORY": str(SHARED_MEMORY), "INLINE": str(INLINE)}


def test_every_field_of_the_message_but_the_callers_is_set(ring):
    text = DEFINITION.read_text(encoding="utf-8")
    fields = set(re.findall(r"^[\w/\[\]]+ +(\w+)\s*(?:#.*)?$", text, re.MULTILINE))
    callers = {"header", "observation_seq", "timings"}
    inline = Message()
    fill_inline(inline, "x", np.zeros(3, np.float32))
    assert set(vars(shared(ring))) == set(vars(inline)) == fields - callers


def test_a_tensor_in_a_slot_is_opened_where_it_lies(ring):
    message = shared(ring, [[1, 2], [3, 4]])
    tensor = open_tensor(message, RingCache())
    assert tensor.tolist() == [[1, 2], [3, 4]]
    assert np.shares_memory(tensor, ring.view(message.slot, message.sequence))
    assert not tensor.flags.writeable and len(message.data) == 0


def test_a_tensor_inline_needs_no_ring():
    message = Message()
    fill_inline(message, "x", np.arange(6, dtype=np.int64).reshape(2, 3)[:, ::-1])
    assert open_tensor(message, RingCache()).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert message.ring == "" and type(message.data) is array.array


@pytest.mark.parametrize("dtype", [str(dtype) for dtype in DTYPES.values()])
def test_each_dtype_comes_through_both_ways(ring, dtype):
    values = np.array([0, 1, 1, 0], dtype)
    slot = ring.begin()
    tensor = slot.payload[:values.nbytes].view(dtype)
    tensor[...] = values
    handle, inline = Message(), Message()
    fill_shared(handle, "x", tensor, ring, slot.index, ring.commit(slot))
    fill_inline(inline, "x", values)
    for message in (handle, inline):
        opened = open_tensor(message, RingCache())
        assert opened.dtype == dtype and (opened == values).all()


def test_bfloat16_is_handed_on_as_its_bits():
    assert DTYPES[dtype_code("bfloat16")] == np.uint16


def test_a_dtype_without_a_code_is_refused_with_those_that_have_one():
    with pytest.raises(HandleError, match="complex64.*float32"):
        fill_inline(Message(), "x", np.zeros(2, np.complex64))


def test_a_tensor_outside_of_the_slot_is_not_named_in_it(ring):
    slot = ring.begin()
    for tensor in (np.zeros(3, np.float32), slot.payload[0:64:2]):
        with pytest.raises(HandleError, match="does not lie whole in slot"):
            fill_shared(Message(), "x", tensor, ring, slot.index, 1)


@pytest.mark.parametrize(("field", "value", "words"), [
    ("transport", 0, "transport is 0"), ("transport", 3, "transport is 3"),
    ("dtype", 0, "dtype 0"), ("dtype", 10, "dtype 10"), ("dtype", 9, "says 12"),
    ("name", "", "1 to 200"), ("name", "x" * 201, "1 to 200"), ("name", 5, "'5'"),
    ("shape", [2], "says 12"), ("shape", [], "says 12"), ("shape", [3, 0], "above 0"),
    ("shape", [1] * 9, "9 dimensions"), ("shape", [-3], "'-3'"), ("shape", [2**63, 2], "says 12"),
    ("shape", [2**62, 2**62, 16], "says 12"), ("shape", [3.0], "'3.0'"),
    ("nbytes", 11, "says 11"), ("nbytes", 2**64 - 4, "says"), ("nbytes", -12, "'-12'"),
    ("offset", 4096, "from 4096 on"), ("offset", 4085, "which has 4096"),
    ("offset", 66, "multiple"),
    ("offset", 2**64 - 8, "which has 4096"), ("offset", -64, "'-64'"),
    ("slot", 3, "has 3"), ("slot", -1, "'-1'"), ("slot", 2**32 - 1, "has 3"),
    ("slot", None, "None"),
    ("sequence", None, "None"), ("ring", 5, "name of a ring"), ("ring", "", "no name of shared"),
    ("ring", "../../etc/passwd", "no name of shared"),
])
def test_a_handle_that_makes_no_sense_is_refused_with_what_it_says(ring, field, value, words):
    message = shared(ring)
    setattr(message, field, value)
    with pytest.raises(HandleError, match=re.escape(words)):
        open_tensor(message, RingCache())


@pytest.mark.parametrize("ring_name", [
    "private.0123456789abcdef", "omni_ros.1.2.0123456789abcdef.prefix",
])
def test_a_ring_that_is_not_there_is_an_error_of_its_own(ring, ring_name):
    message = shared(ring)
    message.ring = ring_name
    with pytest.raises(RingError):
        open_tensor(message, RingCache())


@pytest.mark.parametrize("sequence", [0, 2, 2**64 - 1])
def test_a_handle_of_another_write_is_refused(ring, sequence):
    message = shared(ring)
    message.sequence = sequence
    with pytest.raises(SlotOverwritten):
        open_tensor(message, RingCache())


@pytest.mark.parametrize("data", [b"", bytes(11), bytes(13), "text of 12 .", [1] * 12, None])
def test_inline_bytes_that_do_not_fit_are_refused(data):
    message = Message()
    fill_inline(message, "x", np.zeros(3, np.float32))
    message.data = data
    with pytest.raises(HandleError, match="data|bytes"):
        open_tensor(message, RingCache())


numbers = st.one_of(
    st.integers(-2, 70), st.integers(0, 2**64 - 1), st.sampled_from([4096, 4095, 2**31, 2**63])
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.fixed_dictionaries({}, optional={
    "transport": st.integers(0, 3), "dtype": st.integers(0, 255), "slot": numbers,
    "sequence": numbers, "offset": numbers, "nbytes": numbers,
    "shape": st.lists(numbers, max_size=10).map(tuple), "name": st.text(max_size=4),
    "data": st.binary(max_size=64), "ring": st.text(max_size=8),
}))
def test_whatever_a_handle_says_it_is_opened_within_its_slot_or_refused(changes):
    with TensorRing.private(slots=3, slot_bytes=4096) as ring:
        message = shared(ring)
        for field, value in changes.items():
            setattr(message, field, value)
        rings = RingCache()
        try:
            opened = open_tensors([message], rings)
        except TensorError:
            return
        tensor = opened.arrays[message.name]
        assert tensor.nbytes == message.nbytes and tensor.shape == tuple(message.shape)
        if message.transport == SHARED_MEMORY:
            first = tensor.ctypes.data - ring.memory(message.slot).ctypes.data
            assert 0 <= first and first + tensor.nbytes <= 4096
        tensor.tobytes()
