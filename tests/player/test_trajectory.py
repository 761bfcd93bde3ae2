# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Commands as trajectories, and what a trajectory controller takes or drops."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.player import TrajectoryPoint, check_joint_trajectory, command_points

JOINTS = ("a", "b")
MS = 10**6


def point(time_ms, positions=(0.0, 0.0), velocities=(0.0, 0.0), accelerations=()):
    return TrajectoryPoint(positions, velocities, accelerations, round(time_ms * MS))


def check(points, names=JOINTS, stamp_ns=0, now_ns=10**18, **options):
    return check_joint_trajectory(
        names, points, controller_joints=JOINTS, stamp_ns=stamp_ns, now_ns=now_ns, **options
    )


def test_a_good_trajectory_is_taken():
    assert check([point(20, velocities=(0.1, 0.2)), point(40)]) is None


def test_names_in_another_order_are_taken():
    assert check([point(20)], names=("b", "a")) is None


@pytest.mark.parametrize(
    ("points", "options", "words"),
    [
        ([point(20)], {"names": ()}, "no joint names"),
        ([point(20)], {"names": ("a", "a")}, "repeated"),
        ([point(20)], {"names": ("a", "c")}, "['c'] are not of this controller"),
        ([point(20, (0.0,), (0.0,))], {"names": ("a",)}, "['b'] are missing"),
        ([], {}, "no points"),
        ([point(20), point(20)], {}, "does not rise strictly"),
        ([point(40), point(20)], {}, "does not rise strictly"),
        ([point(-1)], {}, "before the start"),
        ([point(20, (0.0,))], {}, "1 positions, expected 2"),
        ([point(20, ())], {}, "0 positions, expected 2"),
        ([point(20, velocities=(0.0,))], {}, "1 velocities, expected 2"),
        ([point(20, accelerations=(0.0,) * 3)], {}, "3 accelerations, expected 2"),
        ([point(20, (float("nan"), 0.0))], {}, "NaN or infinite"),
        ([point(20, velocities=(0.0, 0.1))], {}, "joint b has velocity 0.1 at the last point"),
        ([point(20)], {"stamp_ns": 10**18 - 21 * MS}, "ends in the past"),
    ],
)
def test_a_bad_trajectory_is_dropped_with_the_reason(points, options, words):
    assert words in check(points, **options)


def test_some_joints_are_enough_where_partial_goals_are_allowed():
    assert check([point(20, (0.0,), (0.0,))], names=("a",), allow_partial=True) is None


def test_a_moving_end_is_taken_where_it_is_allowed():
    assert check([point(20, velocities=(1.0, 0.0))], allow_nonzero_end_velocity=True) is None


def test_positions_alone_are_enough():
    assert check([point(20, velocities=())]) is None


def test_a_stamped_trajectory_that_ends_now_or_later_is_taken():
    assert check([point(20)], stamp_ns=10**18 - 20 * MS) is None


def test_a_command_at_rest_is_one_point_one_period_ahead(rig):
    (only,) = command_points(rig.tick(), rig.period_ns)
    assert only.time_from_start_ns == rig.period_ns
    assert list(only.velocities) == [0.0] * 6
    np.testing.assert_array_equal(only.positions, rig.robot.home)


def test_a_moving_command_holds_the_next_setpoints_and_its_stop(rig):
    rig.sine()
    command = rig.run(0.7)[-1]
    points = command_points(command, rig.period_ns)
    assert len(command.ahead_position) == rig.robot.player.lookahead - 1 == 1
    times = [point.time_from_start_ns for point in points]
    assert times == [(k + 1) * rig.period_ns for k in range(len(points))]
    assert np.any(points[0].velocities) and not np.any(points[-1].velocities)


def test_the_velocity_of_a_point_is_the_mean_of_the_steps_around_it(rig):
    rig.sine()
    command = rig.run(0.7)[-1]
    points = command_points(command, rig.period_ns)
    slope = (np.array(points[1].positions) - rig.commands[-2].position) / (2 * rig.period_s)
    np.testing.assert_allclose(points[0].velocities, slope, atol=1e-9)


def test_the_second_setpoint_is_what_the_next_tick_sends_when_nothing_changes(rig):
    rig.sine(rows=60)
    rig.run(0.7)
    before = rig.commands[-1]
    after = rig.tick()
    np.testing.assert_allclose(after.position, before.ahead_position[0], atol=1e-12)
