# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Replies against metadata and wishes."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.openpi.dialect import Reply
from omni_ros.openpi.errors import ReplyError
from omni_ros.openpi.replies import read_actions

A = np.arange(12, dtype=np.float32).reshape(4, 3)


def code(reply: Reply, metadata=None, **wanted) -> str:
    with pytest.raises(ReplyError) as caught:
        read_actions(reply, metadata or {}, **wanted)
    return caught.value.code


@pytest.mark.parametrize("array", [A, A[None], A.astype(np.float64), A.astype(np.int32)])
def test_rows_and_a_batch_of_one_are_taken(array):
    actions = read_actions(Reply({"actions": array}), {})
    assert np.array_equal(actions.values, A) and actions.values.dtype == np.float64
    assert actions.valid_rows == 4


def test_one_row_is_taken_where_nothing_says_otherwise():
    assert read_actions(Reply({"": A[0]}), {}).values.shape == (1, 3)
    assert code(Reply({"": A[0]}), {"action_horizon": 4}) == "shape"


def test_horizon_and_width_of_the_metadata_hold():
    metadata = {"action_horizon": 4, "action_dim": 3, "max_action_horizon": 4}
    assert read_actions(Reply({"": A}), metadata).values.shape == (4, 3)
    assert code(Reply({"": A[:3]}), metadata) == "shape"
    assert code(Reply({"": A[:, :2]}), metadata) == "shape"
    assert code(Reply({"": A}), {"max_action_horizon": 3}) == "shape"


@pytest.mark.parametrize("value", [True, 50.0, "50", None, -1, [50]])
def test_metadata_of_another_form_are_no_objection(value):
    assert read_actions(
        Reply({"": A}), {"action_horizon": value, "action_dim": value}
    ).values.shape == (4, 3)


def test_the_mappings_horizon_and_width_hold():
    assert read_actions(Reply({"": A}), {}, horizon=4, width=2).values.shape == (4, 3)
    assert code(Reply({"": A}), {}, horizon=5) == "shape"
    assert code(Reply({"": A}), {}, width=4) == "shape"


def test_named_parts_have_to_be_those_that_were_declared():
    reply = Reply({"arm": A, "hand": A[:, :1]})
    assert read_actions(reply, {"action_keys": ["hand", "arm"]}).values.shape == (4, 4)
    assert code(reply, {"action_keys": ["arm"]}) == "names"
    assert code(reply, {"action_keys": ["arm", "hand", "arm"]}) == "names"
    assert code(reply) == "names"
    assert code(reply, keys=("arm", "foot")) == "names"


def test_named_parts_of_different_lengths_are_refused():
    assert code(Reply({"arm": A, "hand": A[:3, :1]}), keys=("arm", "hand")) == "shape"


def test_one_width_in_the_metadata_says_nothing_about_several_parts():
    reply = Reply({"arm": A, "hand": A[:, :1]})
    assert read_actions(reply, {"action_dim": 3}, keys=("arm", "hand")).values.shape == (4, 4)


def test_the_state_that_a_server_returns_is_no_action():
    reply = Reply({"actions": A, "state": np.zeros(7)})
    assert read_actions(reply, {}).columns == {"actions": 3}


def test_one_array_of_an_unusual_name_is_taken():
    assert read_actions(Reply({"action.joints": A}), {}).columns == {"action.joints": 3}


def test_other_spaces_than_declared_are_refused():
    reply = Reply({"actions": A}, {"action_space": "eef_pose"})
    assert code(reply, {"action_space": "joint_position"}) == "names"
    assert code(Reply({"": A}, {"embodiment_tag": "a"}), {"embodiment_tag": "b"}) == "names"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused_with_its_place(bad):
    array = A.copy()
    array[2, 1] = bad
    with pytest.raises(ReplyError, match="row 2, column 1") as caught:
        read_actions(Reply({"": array}), {})
    assert caught.value.code == "non_finite"


def test_valid_steps_are_handed_on():
    for good in (3, np.int64(3)):
        assert read_actions(Reply({"actions": A}, {"valid_steps": good}), {}).valid_rows == 3
    for bad in (5, -1, True, "3"):
        assert code(Reply({"actions": A}, {"valid_steps": bad})) == "shape"


def test_a_timing_that_is_none_is_left_out():
    reply = Reply({"actions": A}, {"server_timing": {"a": 1, "b": "x", "c": float("nan"), 5: 2.0}})
    assert read_actions(reply, {}).server_timing == {"a": 1.0, "5": 2.0}


def test_more_rows_than_any_player_keeps_are_refused():
    assert code(Reply({"": np.zeros((5000, 2), np.float32)})) == "shape"
