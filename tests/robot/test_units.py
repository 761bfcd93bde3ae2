# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Units: what the policy sees and what the topics see (degrees against radians)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from omni_ros.robot import robot_from_mapping

LIMITS = {"velocity": 1.0, "acceleration": 5.0, "jerk": 50.0}


@pytest.fixture
def robot():
    return robot_from_mapping(
        {
            "name": "mixed",
            "joints": [
                {"name": "same", "position": [-2.0, 2.0], **LIMITS},
                {"name": "turn", "policy_unit": "deg", "position": [-2.0, 2.0], **LIMITS},
                {
                    "name": "jaw",
                    "kind": "gripper",
                    "policy_unit": "normalised",
                    "normalised": {"policy": [0.0, 100.0], "joint": [1.5, -0.5]},
                    "position": [-0.5, 1.5],
                    **LIMITS,
                },
            ],
        }
    )


def test_a_quarter_turn_is_90_degrees_to_the_policy(robot):
    assert robot.to_policy([0.0, math.pi / 2, 0.0])[1] == pytest.approx(90.0, abs=1e-12)
    assert robot.to_policy([0.0, 1.5708, 0.0])[1] == pytest.approx(90.0, abs=1e-3)


def test_90_degrees_of_the_policy_are_a_quarter_turn_on_the_topic(robot):
    assert robot.to_topic([0.0, 90.0, 0.0])[1] == pytest.approx(1.5708, abs=1e-4)


def test_a_joint_in_the_same_unit_passes_bit_for_bit(robot):
    value = 0.1 + 0.2
    assert robot.to_topic([value, 0.0, 0.0])[0] == value
    assert robot.to_policy([value, 0.0, 0.0])[0] == value


def test_a_normalised_gripper_maps_its_ends_even_when_it_runs_the_other_way(robot):
    np.testing.assert_allclose(robot.to_topic([[0, 0, 0], [0, 0, 100]])[:, 2], [1.5, -0.5])
    np.testing.assert_allclose(robot.to_policy([[0, 0, 1.5], [0, 0, -0.5]])[:, 2], [0.0, 100.0])


def test_velocities_are_scaled_without_the_offset(robot):
    np.testing.assert_allclose(
        robot.velocity_to_topic([1.0, 180.0, 50.0]), [1.0, math.pi, -1.0], atol=1e-12
    )
    np.testing.assert_allclose(
        robot.velocity_to_policy([1.0, math.pi, -1.0]), [1.0, 180.0, 50.0], atol=1e-12
    )


def test_a_round_trip_gives_the_same_pose(robot):
    rows = np.random.default_rng(0).uniform(-0.5, 1.5, (5, 3))
    np.testing.assert_allclose(robot.to_topic(robot.to_policy(rows)), rows, atol=1e-12)
