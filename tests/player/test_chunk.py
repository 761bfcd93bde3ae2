# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What parse_chunk takes and refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.player import Chunk, ControlMode, Reason, Refusal, parse_chunk
from omni_ros.robot import load_robot


@pytest.fixture
def fields(rig):
    return rig.fields(np.tile(rig.robot.home, (3, 1)))


def parse(rig, fields, **changes):
    return parse_chunk(robot=rig.robot, **{**fields, **changes})


def test_a_good_chunk_is_taken_in_topic_units(rig, fields):
    chunk = parse(rig, fields)
    assert isinstance(chunk, Chunk)
    assert chunk.control_mode is ControlMode.POSITION
    np.testing.assert_array_equal(chunk.values, np.tile(rig.robot.home, (3, 1)))


def test_columns_are_put_in_order_by_name(rig, fields):
    names = list(rig.robot.joint_names)[::-1]
    rows = np.arange(18.0).reshape(3, 6)
    chunk = parse(rig, fields, joint_names=names, values=rows.ravel())
    np.testing.assert_array_equal(chunk.values, rows[:, ::-1])


def test_policy_names_and_units_are_understood(tabletop):
    from pathlib import Path

    so101 = load_robot(Path(__file__).parents[2] / "config" / "robots" / "so101.yaml")
    chunk = parse_chunk(
        robot=so101,
        stamp_ns=1,
        dt_ns=10**7,
        life_ns=10**9,
        control_mode=1,
        joint_names=so101.policy_names,
        joint_units=so101.policy_units,
        rows=1,
        values=[90.0, 0.0, 0.0, 0.0, 0.0, 100.0],
        chunk_id=1,
    )
    np.testing.assert_allclose(chunk.values[0], [math.pi / 2, 0.0, 0.0, 0.0, 0.0, 1.75])


def test_offsets_stay_fixed_to_the_anchor(rig, fields):
    rows = np.arange(1, 4)[:, None] * np.full((3, 6), 0.01)
    chunk = parse(rig, fields, control_mode=3, values=rows.ravel(), anchor=rig.robot.home)
    np.testing.assert_allclose(chunk.values, rig.robot.home + rows)
    assert chunk.control_mode is ControlMode.POSITION


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"values": [math.nan] * 18}, Reason.NON_FINITE, "18 of 18 values"),
        ({"anchor": [math.inf] * 6, "control_mode": 3}, Reason.NON_FINITE, "1"),
        ({"values": [0.0] * 17}, Reason.BAD_SHAPE, "17 values, expected 18"),
        ({"values": [], "rows": 0}, Reason.BAD_SHAPE, "0 rows, expected 1 to 512"),
        ({"values": [0.0] * 6 * 513, "rows": 513}, Reason.BAD_SHAPE, "513 rows"),
        ({"values": ["a"]}, Reason.BAD_SHAPE, "not numbers"),
        ({"joint_names": ["gripper"] * 6}, Reason.BAD_JOINTS, "['gripper'] are repeated"),
        ({"joint_names": ["shoulder_pan"]}, Reason.BAD_JOINTS, "missing ['shoulder_lift'"),
        ({"joint_names": list("abcdef")}, Reason.BAD_JOINTS, "unknown ['a', 'b'"),
        ({"joint_units": ["deg"] * 6}, Reason.BAD_UNITS, "the robot YAML says ['rad'"),
        ({"joint_units": []}, Reason.BAD_UNITS, "units are []"),
        ({"control_mode": 2}, Reason.BAD_MODE, "output joint_trajectory plays positions"),
        ({"control_mode": 9}, Reason.BAD_MODE, "9 is not one of [1, 2, 3]"),
        ({"control_mode": 3}, Reason.BAD_MODE, "anchor has 0 values, expected 6"),
        ({"dt_ns": 0}, Reason.BAD_TIME, "dt is 0 s"),
        ({"life_ns": -1}, Reason.BAD_TIME, "expected both above 0"),
        ({"dt_ns": 10**16}, Reason.BAD_TIME, "at most 3600 s"),
    ],
)
def test_a_bad_chunk_is_refused_with_both_sides_of_the_matter(rig, fields, changes, reason, words):
    refusal = parse(rig, fields, **changes)
    assert isinstance(refusal, Refusal)
    assert refusal.reason is reason
    assert words in refusal.text


def test_non_finite_values_are_noticed_before_anything_else(rig, fields):
    refusal = parse(rig, fields, values=[math.nan], joint_names=[], dt_ns=0)
    assert refusal.reason is Reason.NON_FINITE


numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data())
def test_whatever_the_fields_hold_the_result_is_finite_or_refused(tabletop, data):
    names = st.sampled_from([*tabletop.joint_names, "x", ""])
    n = data.draw(st.integers(0, 7))
    result = parse_chunk(
        robot=tabletop,
        stamp_ns=data.draw(st.integers(-(2**63), 2**63 - 1)),
        dt_ns=data.draw(st.integers(-(10**12), 10**13)),
        life_ns=data.draw(st.integers(-(10**12), 10**13)),
        control_mode=data.draw(st.integers(0, 255)),
        joint_names=data.draw(
            st.one_of(st.permutations(tabletop.joint_names), st.lists(names, max_size=7))
        ),
        joint_units=data.draw(st.sampled_from([["rad"] * 6, ["deg"] * 6, []])),
        rows=data.draw(st.integers(0, 2**32 - 1) | st.just(2)),
        values=data.draw(st.lists(numbers, min_size=n, max_size=13) | st.just([1e308] * 12)),
        anchor=data.draw(st.lists(numbers, max_size=7)),
        chunk_id=1,
    )
    assert isinstance(result, (Chunk, Refusal))
    if isinstance(result, Chunk):
        assert np.isfinite(result.values).all() and result.values.shape[1] == 6


class Counted(list):
    """A list that counts how many of its elements are looked at."""

    looks = 0

    def __iter__(self):
        for item in super().__iter__():
            self.looks += 1
            yield item

    def __getitem__(self, key):
        if isinstance(key, slice):
            self.looks += len(range(*key.indices(len(self))))
        else:
            self.looks += 1
        return super().__getitem__(key)

    def count(self, value):
        self.looks += len(self)
        return super().count(value)


@pytest.mark.parametrize("field", ["joint_names", "joint_units"])
def test_twenty_thousand_names_are_refused_without_looking_through_them(rig, fields, field):
    many = Counted(f"joint_with_a_long_name_{k}" for k in range(20_000))
    refusal = parse(rig, fields, **{field: many})
    assert refusal.reason in (Reason.BAD_JOINTS, Reason.BAD_UNITS)
    assert many.looks < 100
    assert len(refusal.text) < 1000


@pytest.mark.parametrize("field", ["values", "anchor"])
def test_more_numbers_than_the_robot_can_take_are_refused_unread(rig, fields, field):
    many = Counted([0.0] * 100_000)
    refusal = parse(rig, fields, **{field: many})
    assert refusal.reason is Reason.BAD_SHAPE
    assert many.looks == 0


def test_long_names_and_a_long_source_are_cut_in_the_text(rig, fields):
    refusal = parse(rig, fields, joint_names=["x" * 10_000] * 6, source="s" * 10_000)
    assert refusal.reason is Reason.BAD_JOINTS
    assert len(refusal.text) < 1000
