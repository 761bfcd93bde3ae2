# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Two tables of actions, and what many verdicts come to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from omni_ros.replay.verdict import ChunkVerdict, Kind, Tally, compare_rows, worst_of

NAMES = ("shoulder", "gripper")
ROWS = np.arange(8.0).reshape(4, 2)


def test_equal_bits_are_the_same_whatever_is_allowed():
    for tolerance in (None, 0.0, 1.0):
        found = compare_rows(ROWS, ROWS.copy(), tolerance=tolerance, names=NAMES)
        assert found.kind is Kind.SAME and found.worst == 0.0 and found.first_row is None


def test_one_bit_is_different_where_none_is_allowed():
    other = ROWS.copy()
    other[2, 1] = np.nextafter(other[2, 1], 9.0)
    found = compare_rows(ROWS, other, tolerance=None, names=NAMES)
    assert found.kind is Kind.DIFFERENT and found.first_row == 2
    assert "gripper" in found.text and "not a bit is allowed" in found.text


@pytest.mark.parametrize(("step", "kind"), [(0.9e-3, Kind.WITHIN), (1.1e-3, Kind.DIFFERENT)])
def test_a_tolerance_is_relative_to_the_largest_value_or_one(step, kind):
    found = compare_rows(ROWS * 0.1, ROWS * 0.1 + step, tolerance=1e-3, names=NAMES)
    assert found.kind is kind
    assert compare_rows(ROWS, ROWS + 5.0 * step, tolerance=1e-3, names=NAMES).kind is Kind.WITHIN


def test_joints_are_measured_by_their_spreads():
    other = ROWS + [0.0, 0.5]
    found = compare_rows(ROWS, other, tolerance=1e-2, names=NAMES, spread=np.array([0.1, 100.0]))
    assert found.kind is Kind.WITHIN and found.by_joint.tolist() == [0.0, 0.5]


def test_a_joint_that_is_far_from_0_and_hardly_moves_loosens_no_tolerance():
    far = ROWS * 0.01 + [100.0, 0.0]
    measure = {"tolerance": 1e-2, "names": NAMES, "spread": np.array([1.0, 1.0])}
    assert compare_rows(far, far + [0.0, 0.5], **measure).kind is Kind.WITHIN
    found = compare_rows(far, far + [0.0, 0.5], centre=np.array([100.0, 0.0]), **measure)
    assert found.kind is Kind.DIFFERENT


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_different_but_to_itself(value):
    other = ROWS.copy()
    other[0, 0] = value
    assert compare_rows(ROWS, other, tolerance=1.0, names=NAMES).kind is Kind.DIFFERENT
    assert compare_rows(other, ROWS, tolerance=1.0, names=NAMES).kind is Kind.DIFFERENT
    assert compare_rows(other, other.copy(), tolerance=None, names=NAMES).kind is Kind.SAME


def test_tables_of_other_sizes_are_different_with_both_sizes():
    found = compare_rows(ROWS, ROWS[:3], tolerance=1.0, names=NAMES)
    assert found.kind is Kind.DIFFERENT and found.text == "4 x 2 values recorded, 3 x 2 values now"


def test_different_is_worse_than_incomplete_and_that_than_a_tolerance():
    assert worst_of([Kind.SAME, Kind.WITHIN]) is Kind.WITHIN
    assert worst_of([Kind.WITHIN, Kind.INCOMPLETE]) is Kind.INCOMPLETE
    assert worst_of([Kind.DIFFERENT, Kind.INCOMPLETE, Kind.SAME]) is Kind.DIFFERENT
    assert worst_of([]) is Kind.INCOMPLETE


def test_a_tally_says_how_many_and_where_the_first_differs():
    tally = Tally()
    assert "no chunk" in tally.text()
    tally.add(ChunkVerdict(Kind.SAME, 1, 0, ""))
    tally.add(ChunkVerdict(Kind.DIFFERENT, 2, 0, "", stage="pixels"))
    assert tally.text() == ("different: 1 same, 1 different of 2 chunks; chunk 2 first, at pixels")
