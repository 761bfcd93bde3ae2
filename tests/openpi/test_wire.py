# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The wire format: both spellings, what is refused, and hostile bytes."""

from __future__ import annotations

import struct
import time
import tracemalloc

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from omni_ros.openpi.errors import OpenPIError, WireError
from omni_ros.openpi.wire import Limits, pack, unpack

ARRAYS = hnp.arrays(
    dtype=st.one_of(hnp.boolean_dtypes(), hnp.integer_dtypes(endianness="?"),
                    hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?")),
    shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)  # fmt: skip


@given(ARRAYS)
@settings(max_examples=100, deadline=None)
def test_an_array_comes_back_as_it_was_writable_and_in_native_order(array):
    back = unpack(pack({"a": array, "b": 1}))["a"]
    assert back.shape == array.shape and back.dtype == array.dtype.newbyteorder("=")
    assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")
    assert back.flags.writeable


def test_a_strided_array_is_sent_in_its_logical_order():
    array = np.arange(24).reshape(4, 6)[::2, ::-3]
    assert np.array_equal(unpack(pack([array]))[0], array)


def test_the_spelling_is_openpis_own():
    raw = msgpack.unpackb(pack(np.array([1.5, 2.0], "<f4")), raw=True)
    assert raw == {b"__ndarray__": True, b"data": struct.pack("<2f", 1.5, 2.0), b"dtype": b"<f4",
                   b"shape": [2]}  # fmt: skip


@pytest.mark.parametrize("keys", [str, str.encode])
def test_array_keys_may_be_text_or_bytes(keys):
    data = {
        keys("__ndarray__"): True,
        keys("data"): b"\x01\x02",
        keys("dtype"): "|u1",
        keys("shape"): [2],
    }
    assert unpack(msgpack.packb(data)).tolist() == [1, 2]


@pytest.mark.parametrize("keys", [str, str.encode])
def test_the_older_spelling_is_read_too(keys):
    entries = {
        "nd": True,
        "type": "<f4",
        "kind": "",
        "shape": [1, 2],
        "data": struct.pack("<2f", 3, 4),
    }
    data = {keys(key): value for key, value in entries.items()}
    assert unpack(msgpack.packb(data)).tolist() == [[3.0, 4.0]]


def test_a_scalar_of_the_older_spelling_is_its_first_element():
    data = {"nd": False, "type": "<i4", "kind": "i", "data": struct.pack("<i", 7)}
    assert unpack(msgpack.packb(data)) == 7


def test_a_map_that_merely_has_such_keys_stays_a_map():
    data = {"nd": True, "type": "<f4", "shape": [1], "data": b"1234"}
    assert unpack(msgpack.packb(data)) == data


@pytest.mark.parametrize("value", [np.float32(1.5), np.int64(-3), np.bool_(True)])
def test_a_scalar_keeps_its_type(value):
    back = unpack(pack(value))
    assert back == value and back.dtype == value.dtype


@pytest.mark.parametrize("value", [
    np.array([object()]), np.array([1j]), np.zeros(2, "i4,f4"), np.array(["2020"], "M8[s]"),
    object(), {1, 2}, 2**70, np.complex64(1),
])  # fmt: skip
def test_what_has_no_place_in_the_format_is_not_sent(value):
    with pytest.raises(WireError, match="cannot be sent"):
        pack({"a": value})


@pytest.mark.parametrize("dtype", ["|O", "<c8", "|V4", "<M8[s]", "i4,f4", "(2,3)<f4", "<f4garbage",
                                   "<U99999999999", "", 4, ["<f4"]])  # fmt: skip
def test_dtypes_that_could_do_harm_are_refused(dtype):
    data = {"__ndarray__": True, "data": b"\0" * 8, "dtype": dtype, "shape": [1]}
    with pytest.raises(WireError, match="dtype"):
        unpack(msgpack.packb(data))


def test_a_kind_that_contradicts_the_dtype_is_refused():
    data = {"nd": True, "type": "<f4", "kind": "V", "shape": [1], "data": b"1234"}
    with pytest.raises(WireError, match="kind"):
        unpack(msgpack.packb(data))


@pytest.mark.parametrize(
    "shape", [[3], [2**40, 2**40], [-1], [1.0], [True], None, "2", [0], [1] * 9]
)
def test_a_shape_that_does_not_fit_the_data_is_refused(shape):
    data = {"__ndarray__": True, "data": b"\0" * 8, "dtype": "<f4", "shape": shape}
    with pytest.raises(WireError):
        unpack(msgpack.packb(data))


def test_a_shape_of_nothing_with_huge_sides_is_refused():
    data = {"__ndarray__": True, "data": b"", "dtype": "<f4", "shape": [0] + [2**30] * 6}
    with pytest.raises(WireError):
        unpack(msgpack.packb(data))


def test_a_byte_that_is_no_boolean_becomes_one():
    data = {"__ndarray__": True, "data": b"\x02\x00", "dtype": "|b1", "shape": [2]}
    assert unpack(msgpack.packb(data)).tolist() == [True, False]


@pytest.mark.parametrize("point", [0x110000, 0xD800])
def test_text_with_characters_that_there_are_not_is_refused(point):
    data = {"__ndarray__": True, "data": struct.pack("<I", point), "dtype": "<U1", "shape": [1]}
    with pytest.raises(WireError, match="characters"):
        unpack(msgpack.packb(data))


HOSTILE = {
    "list of four billion": b"\xdd\xff\xff\xff\xff",
    "map of four billion": b"\xdf\xff\xff\xff\xff",
    "bytes of four billion": b"\xc6\xff\xff\xff\xff",
    "text of four billion": b"\xdb\xff\xff\xff\xff",
    "lists in lists": b"\x91" * 5000 + b"\xc0",
    "maps in maps": b"\x81\xa1a" * 5000 + b"\xc0",
    "many large lists announced": (b"\xdd\x00\x0f\x00\x00" * 10) + b"\xc0" * (1 << 20),
    "a million empty maps": b"\xdd\x00\x0f\x42\x40" + b"\x80" * 1_000_000,
    "extension": b"\xc7\x08\x01abcdefgh",
    "timestamp": b"\xd6\xff\x00\x00\x00\x00",
    "never used": b"\xc1",
    "cut off": pack({"a": np.zeros(100)})[:-1],
    "more behind it": pack(1) + b"\x00",
    "empty": b"",
    "same key twice": b"\x82\xa1a\x01\xa1a\x02",
    "a list as key": b"\x81\x91\x01\x02",
    "a number as key": b"\x81\x01\x02",
    "not UTF-8": b"\xa2\xff\xfe",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_cost_nothing_and_are_refused(name):
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            unpack(HOSTILE[name])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_a_message_over_the_limit_is_refused_before_it_is_read():
    with pytest.raises(WireError, match="at most 64"):
        unpack(b"\xc0" * 65, Limits(bytes=64))


@given(st.binary(max_size=400))
@settings(max_examples=400, deadline=None)
def test_any_bytes_are_read_or_refused(data):
    try:
        unpack(data)
    except WireError:
        pass


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_message_with_a_few_bytes_changed_is_read_or_refused(data):
    message = bytearray(pack({
        "images": {"front": np.zeros((4, 4, 3), np.uint8)}, "state": np.arange(6, dtype=np.float32),
        "prompt": "pick", "scale": np.float32(2), "names": np.array(["ab", "c"]), "n": [1, None, True],
    }))  # fmt: skip
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(message) - 1))
        message[place] = data.draw(st.integers(0, 255))
    tracemalloc.start()
    try:
        unpack(bytes(message))
    except OpenPIError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 << 20


@given(st.lists(st.sampled_from([b"\xdc\xff\xff", b"\x9f", b"\x8f", b"\xa1a", b"\xc4\x02ab", b"\x01",
                                 b"\xde\xff\xff", b"\xc0", b"\xab__ndarray__", b"\xc3"]), max_size=300))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_any_structure_is_read_or_refused(parts):
    try:
        unpack(b"".join(parts))
    except WireError:
        pass


def test_the_largest_allowed_number_of_values_is_read_in_bounded_time():
    message = msgpack.packb([0] * 99_990)
    began = time.process_time()
    assert len(unpack(message)) == 99_990
    assert time.process_time() - began < 5.0  # 0.05 s, unless something grows faster than its input
    with pytest.raises(WireError, match="more than 100000 values"):
        unpack(msgpack.packb([0] * 100_001))
