# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which dialect a server speaks, and what its messages mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.openpi.dialect import (
    VLLM_PATH,
    Dialect,
    RemoteFault,
    Reply,
    ResetDone,
    evidence,
    read_metadata,
    read_reply,
    settle,
)
from omni_ros.openpi.errors import ReplyError
from omni_ros.openpi.wire import pack

VLLM = {"image_resolution": [224, 224], "action_horizon": 50, "needs_session_id": False}


@pytest.mark.parametrize(("facts", "dialect"), [
    ({"server": "uvicorn"}, Dialect.VLLM),
    ({"path": VLLM_PATH, "metadata": VLLM}, Dialect.VLLM),
    ({"path": "/", "server": "Python/3.11 websockets/15.0"}, Dialect.OPENPI),
    ({"metadata": {"dialect": "openpi"}, "path": VLLM_PATH}, Dialect.OPENPI),
    # openpi's server takes any path, so that says nothing.
    ({"path": VLLM_PATH, "server": "Python/3.11 websockets/15.0", "metadata": {}}, Dialect.UNKNOWN),
    ({"path": "/", "metadata": VLLM}, Dialect.UNKNOWN),
    ({}, Dialect.UNKNOWN),
    ({"metadata": {"dialect": 7}}, Dialect.UNKNOWN),
])  # fmt: skip
def test_the_handshake_is_taken_for_what_it_proves(facts, dialect):
    assert evidence(**facts) is dialect


def test_an_answer_outweighs_the_handshake():
    assert settle(Dialect.OPENPI, Dialect.VLLM) is Dialect.VLLM
    assert settle(Dialect.OPENPI, Dialect.UNKNOWN) is Dialect.OPENPI


def test_metadata_may_be_anything_in_a_map():
    assert read_metadata(pack({"a": [1, {"b": None}]})) == {"a": [1, {"b": None}]}
    assert read_metadata(pack({})) == {}


def test_a_bare_array_comes_from_vllm():
    answer = read_reply(pack(np.zeros((50, 32), np.float32)))
    assert (
        isinstance(answer, Reply) and answer.dialect is Dialect.VLLM and list(answer.named) == [""]
    )


def test_a_map_with_server_timing_comes_from_openpi():
    answer = read_reply(pack({"actions": np.zeros(3), "server_timing": {"infer_ms": 1.0}}))
    assert answer.dialect is Dialect.OPENPI and list(answer.named) == ["actions"]
    assert answer.extra == {"server_timing": {"infer_ms": 1.0}}


def test_a_map_of_arrays_alone_may_come_from_either():
    assert read_reply(pack({"arm": np.zeros((1, 40, 7))})).dialect is Dialect.UNKNOWN


def test_an_error_map_is_a_fault_and_not_a_result():
    answer = read_reply(pack({"type": "error", "message": "Invalid request payload"}))
    assert answer == RemoteFault("Invalid request payload", False, "", Dialect.VLLM)


def test_a_traceback_is_told_by_its_last_line_and_closes():
    answer = read_reply(
        "Traceback (most recent call last):\n  ...\nValueError: bad\x1b[31m state\n\n"
    )
    assert answer.closes and answer.dialect is Dialect.OPENPI
    assert answer.text == "ValueError: bad [31m state"  # nothing that a terminal would obey


@pytest.mark.parametrize("read", [read_reply, read_metadata])
def test_an_array_where_a_word_is_looked_for_is_none(read):
    for key in ("type", b"type", "status", "dialect"):
        read(pack({key: np.zeros(2), "actions": np.zeros((2, 3))}))


def test_no_policy_is_a_fault_at_the_handshake():
    fault = read_metadata(
        '{"type": "error", "error": "Robot policy not available", "code": "unsupported"}'
    )
    assert fault.text == "Robot policy not available" and fault.code == "unsupported"


def test_the_answer_to_a_reset_is_none_to_an_observation():
    assert isinstance(read_reply(pack({"status": "reset successful"})), ResetDone)


def test_actions_as_nested_lists_are_read():
    assert read_reply(pack({"actions": [[1, 2], [3, 4]]})).named["actions"].tolist() == [
        [1, 2],
        [3, 4],
    ]


def test_a_name_as_text_and_as_bytes_is_refused():
    import msgpack

    array = {"__ndarray__": True, "data": b"\0" * 4, "dtype": "<f4", "shape": [1]}
    with pytest.raises(ReplyError, match="one name"):
        read_reply(msgpack.packb({"actions": array, b"actions": array}))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.just(np.zeros(2)) | st.integers(-2**63, 2**63 - 1) | st.floats() | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=6) | st.sampled_from(["type", "error", "actions", "status"]),
                      inner, max_size=4), max_leaves=12,
)  # fmt: skip


@given(PLAIN)
@settings(max_examples=300, deadline=None)
def test_any_value_as_a_reply_is_read_or_refused(value):
    message = pack(value)
    for read in (read_reply, read_metadata):
        try:
            read(message)
        except ReplyError:
            pass


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_as_a_reply_is_read_as_a_fault(text):
    assert isinstance(read_reply(text), RemoteFault)
