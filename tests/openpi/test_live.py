# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Remote rows held against the robot's limits and the local policy's rows."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.openpi.dialect import Dialect
from omni_ros.openpi.live import ParityMeter, drawing, outside
from omni_ros.policy.noise import noise

LIMITS = {"lower": np.array([-1.0, 0.0]), "upper": np.array([1.0, 4.0]), "velocity": np.array([2.0, 1.0]),
          "names": ("lift", "grip"), "slack": 0.1}  # fmt: skip


def test_rows_within_limits_and_a_little_beyond_are_taken():
    assert outside(np.array([[1.0, 4.0], [-1.19, -0.39]]), **LIMITS) is None


def test_rows_of_another_unit_are_refused_with_joint_value_and_limits():
    text = outside(np.array([[0.0, 1.0], [57.3, 1.0]]), **LIMITS)
    assert "row 1 moves lift to the position 57.3" in text and "-1 to 1" in text


def test_offsets_are_judged_from_where_the_robot_was():
    rows = np.array([[0.5, 0.0]])
    kind = {"control_mode": "position_offset"}
    assert outside(rows, **LIMITS, **kind, anchor=np.array([0.0, 1.0])) is None
    assert "lift" in outside(rows, **LIMITS, **kind, anchor=np.array([0.9, 1.0]))


def test_velocities_are_judged_by_the_velocity_limit():
    assert outside(np.array([[2.0, -1.0]]), **LIMITS, control_mode="velocity") is None
    assert "velocity 3" in outside(np.array([[3.0, 0.0]]), **LIMITS, control_mode="velocity")


def test_rows_that_are_not_finite_are_refused():
    assert "not finite" in outside(np.array([[np.nan, 0.0]]), **LIMITS)


ROWS = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize("first", ["local", "remote"])
def test_chunks_of_one_observation_are_paired_whoever_is_first(first):
    meter = ParityMeter()
    second = {"local": "remote", "remote": "local"}[first]
    assert getattr(meter, first)(5, ROWS, 0.1) is None
    assert getattr(meter, second)(6, ROWS, 0.1) is None
    difference = getattr(meter, second)(5, ROWS + [0.0, 0.5], 0.1)
    assert difference.by_joint.tolist() == [0.0, 0.5] and difference.by_row.tolist() == [0.5] * 6
    assert meter.summary()[0] == 1


def test_chunks_of_different_rates_are_compared_at_the_same_instants():
    meter = ParityMeter()
    fine = np.linspace(0.1, 1.2, 12)[:, None]  # a ramp: the value is the time
    coarse = np.array([[0.2], [0.4], [0.6], [0.9]])
    meter.local(0, fine, 0.1)
    gap = meter.remote(0, coarse, 0.2).gap
    assert np.allclose(gap[:, 0], [0, 0, 0, 0.1])


def test_chunks_of_different_lengths_are_compared_as_far_as_both_go():
    meter = ParityMeter()
    meter.local(0, ROWS, 0.1)
    assert meter.remote(0, ROWS[:4], 0.1).gap.shape == (4, 2)


def test_chunks_without_a_partner_are_given_up_on_and_counted():
    meter = ParityMeter()
    for stamp in range(100):
        meter.remote(stamp, ROWS, 0.1)
    assert meter.unpaired == [0, 84] and meter.summary() is None


def test_other_joints_cannot_be_compared():
    meter = ParityMeter()
    meter.local(0, ROWS, 0.1)
    assert meter.remote(0, ROWS[:, :1], 0.1) is None and meter.mismatched == 1


def test_the_summary_is_over_a_window_and_can_be_forgotten():
    meter = ParityMeter(window=2)
    for stamp, shift in enumerate((100.0, 1.0, 3.0)):
        meter.local(stamp, ROWS, 0.1)
        meter.remote(stamp, ROWS + shift, 0.1)
    count, largest, mean = meter.summary()
    assert count == 2 and largest.tolist() == [3.0, 3.0] and mean.tolist() == [2.0, 2.0]
    meter.clear()
    assert meter.summary() is None


def test_a_remote_that_takes_noise_gets_what_the_local_policy_drew():
    drawn, same = drawing({"takes": ["noise", "seed"], "noise_shape": [4, 2]}, Dialect.OPENPI,
                          seed=3, stamp_ns=7)
    assert same and np.array_equal(drawn["noise"], noise((4, 2), seed=3, stamp_ns=7))


@pytest.mark.parametrize(("metadata", "dialect"), [
    ({}, Dialect.VLLM), ({"takes": ["seed"]}, Dialect.OPENPI)])
def test_a_remote_that_takes_only_a_seed_gets_one_that_repeats(metadata, dialect):
    drawn, same = drawing(metadata, dialect, seed=3, stamp_ns=7)
    assert not same and 0 <= drawn["seed"] < 2**31
    assert drawn == drawing(metadata, dialect, seed=3, stamp_ns=7)[0]
    assert drawn != drawing(metadata, dialect, seed=3, stamp_ns=8)[0]


@pytest.mark.parametrize(("metadata", "dialect"), [
    ({}, Dialect.OPENPI), ({}, Dialect.UNKNOWN), ({"takes": []}, Dialect.OPENPI),
    ({"takes": "seed"}, Dialect.OPENPI), ({"takes": ["noise"], "noise_shape": 4}, Dialect.OPENPI),
    *(({"takes": [np.zeros(2), "noise"], "noise_shape": shape}, Dialect.OPENPI) for shape in (
        [10**9, 10**9], [1 << 20, 8], [16, 1 << 20], [-1, 6], [0, 6], ["a", "b"], [16, 6, 1], [16.0, 6],
        [True, 6], [np.zeros(2), 6], np.zeros(2)))])
def test_a_remote_that_may_not_know_the_words_is_not_sent_any(metadata, dialect):
    assert drawing(metadata, dialect, seed=3, stamp_ns=7) == ({}, False)
