# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Closed-form kinematics: inverse undoes forward, and both agree with the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.world import kinematics
from omni_ros.world.scene import BLOCK_ANGLE, BLOCK_RADIUS, JOINT_LOWER, JOINT_UPPER
from omni_ros.world.simulation import Simulation


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    """Tip positions over the block area, from just above the table to 9 cm."""
    random = np.random.default_rng(0)
    radius = random.uniform(*BLOCK_RADIUS, size=500)
    angle = random.uniform(-BLOCK_ANGLE, BLOCK_ANGLE, size=500)
    height = random.uniform(0.008, 0.09, size=500)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=-1)


def test_forward_of_inverse_is_the_point_itself(points):
    joints = kinematics.inverse(points)
    np.testing.assert_allclose(kinematics.forward(joints), points, atol=1e-12)


def test_all_of_the_block_area_is_within_the_joint_ranges(points):
    joints = kinematics.inverse(points)
    assert np.all((joints >= JOINT_LOWER) & (joints <= JOINT_UPPER))


def test_inverse_keeps_the_tilt_and_roll_that_were_asked_for(points):
    near = points[np.hypot(points[:, 0], points[:, 1]) < 0.24]
    joints = kinematics.inverse(near, tilt=-0.1, roll=0.4, gripper=0.9)
    np.testing.assert_allclose(kinematics.tilt_of(joints), -0.1, atol=1e-12)
    np.testing.assert_allclose(joints[:, 4:], [[0.4, 0.9]] * len(near))


def test_inverse_of_many_points_equals_one_by_one(points):
    together = kinematics.inverse(points[:10].reshape(2, 5, 3))
    single = np.array([kinematics.inverse(point) for point in points[:10]]).reshape(2, 5, 6)
    np.testing.assert_array_equal(together, single)


def test_the_tip_of_the_simulated_arm_is_where_forward_says():
    simulation = Simulation()
    for seed in range(20):
        simulation.reset(seed)
        expected = kinematics.forward(simulation.joint_positions())
        np.testing.assert_allclose(simulation.tip(), expected, atol=1e-12)


@pytest.mark.parametrize("point", [(0.6, 0.0, 0.05), (np.nan, 0.0, 0.05)])
def test_a_point_out_of_reach_is_refused_with_the_links_reach(point):
    with pytest.raises(kinematics.UnreachableError, match="0.251 m"):
        kinematics.inverse(np.array(point))


def test_a_point_behind_the_robot_is_refused_with_the_joint_range():
    with pytest.raises(kinematics.UnreachableError, match="joint 0 would be at .*1.92"):
        kinematics.inverse(np.array([-0.2, 0.0, 0.05]))


def test_without_strictness_an_unreachable_point_gives_the_nearest_stretch():
    joints = kinematics.inverse(np.array([0.6, 0.0, 0.1]), tilt=0.0, strict=False)
    assert np.all(np.isfinite(joints))
    assert kinematics.forward(joints)[0] > 0.27


@pytest.mark.parametrize("yaw", np.linspace(-3, 3, 7))
def test_roll_for_yaw_lines_up_with_a_cube_by_at_most_an_eighth_turn(yaw):
    roll = kinematics.roll_for_yaw(0.3, yaw)
    assert abs(roll) <= np.pi / 4 + 1e-12
    quarter = (0.3 + roll - yaw) / (np.pi / 2)
    assert quarter == pytest.approx(round(quarter), abs=1e-9)
