# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The controllers take, refuse and outlive commands as ros2_control's do."""

from __future__ import annotations

import re

import numpy as np
import pytest

from omni_ros.player.trajectory import TrajectoryPoint
from omni_ros.world.controllers import (
    ForwardCommandController,
    JointTrajectoryController,
    Knot,
    interpolate,
)

JOINTS = ("a", "b")
MS = 1_000_000
NOW = 1_000_000 * MS  # 1000 s
REST = np.zeros(2)


def point(time_ms: float, positions, velocities=(), accelerations=()) -> TrajectoryPoint:
    return TrajectoryPoint(positions, velocities, accelerations, int(time_ms * MS))


def send(controller, points, *, stamp_ns=0, now_ns=NOW, joints=JOINTS, at=REST, moving=REST):
    return controller.on_trajectory(
        joints,
        points,
        stamp_ns=stamp_ns,
        now_ns=now_ns,
        measured_position=np.asarray(at, dtype=float),
        measured_velocity=np.asarray(moving, dtype=float),
    )


def at(controller, time_ms: float, measured=REST) -> np.ndarray:
    """Return what is commanded so long after NOW."""
    return controller.update(NOW + int(time_ms * MS), measured)


@pytest.fixture()
def controller() -> JointTrajectoryController:
    return JointTrajectoryController(JOINTS)


# -- interpolation ------------------------------------------------------------------------------


def test_positions_alone_are_joined_by_straight_lines(controller):
    assert send(controller, [point(100, [1, 2]), point(200, [1, 4])]) is None
    np.testing.assert_allclose(at(controller, 50), [0.5, 1.0])
    np.testing.assert_allclose(at(controller, 125), [1.0, 2.5])


def test_a_cubic_passes_its_points_with_the_given_velocities(controller):
    rows = [point(100, [1, -1], [2, 0]), point(200, [1.5, 3], [-1, 4]), point(300, [2, 2], [0, 0])]
    assert send(controller, rows) is None
    for row in rows[:2]:
        time_ms = row.time_from_start_ns / MS
        np.testing.assert_allclose(at(controller, time_ms), row.positions, atol=1e-12)
        np.testing.assert_allclose(controller.desired.velocity, row.velocities, atol=1e-9)


def test_velocity_is_continuous_through_the_points_of_a_cubic(controller):
    send(controller, [point(100, [1, -1], [2, 0]), point(200, [2, 3], [0, 0])])
    at(controller, 100 - 1e-3)
    before = controller.desired.velocity
    at(controller, 100 + 1e-3)
    np.testing.assert_allclose(controller.desired.velocity, before, atol=0.02)


def test_accelerations_make_it_a_quintic_that_meets_all_six_conditions():
    start = Knot(0, np.array([1.0]), np.array([0.5]), np.array([-2.0]))
    end = Knot(400 * MS, np.array([3.0]), np.array([-1.0]), np.array([4.0]))
    for knot in (start, end):
        sample = interpolate(start, end, knot.time_ns)
        got = [sample.position, sample.velocity, sample.acceleration]
        wanted = [knot.position, knot.velocity, knot.acceleration]
        np.testing.assert_allclose(got, wanted, atol=1e-9)


def test_the_derivatives_of_every_order_are_those_of_the_path():
    base = Knot(0, np.array([1.0]), np.array([0.5]), np.array([-2.0]))
    end = Knot(400 * MS, np.array([3.0]), np.array([-1.0]), np.array([4.0]))
    for order in ("quintic", "cubic", "linear"):
        start = {
            "quintic": base,
            "cubic": Knot(0, base.position, base.velocity),
            "linear": Knot(0, base.position),
        }[order]
        h = 1000 * MS // 10_000
        a, b, c = (interpolate(start, end, 150 * MS + k * h) for k in (-1, 0, 1))
        slope = (c.position - a.position) / (2 * h * 1e-9)
        curve = (c.velocity - a.velocity) / (2 * h * 1e-9)
        np.testing.assert_allclose(b.velocity, slope, rtol=1e-5, err_msg=order)
        np.testing.assert_allclose(b.acceleration, curve, rtol=1e-5, atol=1e-6, err_msg=order)


# -- when it starts -----------------------------------------------------------------------------


def test_stamp_zero_starts_now_from_the_measured_state(controller):
    send(controller, [point(100, [1, 1])], at=[0.5, 0.5])
    np.testing.assert_allclose(at(controller, 0), [0.5, 0.5])
    np.testing.assert_allclose(at(controller, 50), [0.75, 0.75])


def test_it_starts_from_the_commanded_state_where_so_configured():
    controller = JointTrajectoryController(JOINTS, interpolate_from_desired_state=True)
    send(controller, [point(100, [1, 1], [0, 0])])
    position, velocity = at(controller, 40), controller.desired.velocity
    send(controller, [point(100, [2, 2], [0, 0])], now_ns=NOW + 40 * MS, at=[-5, -5])
    np.testing.assert_allclose(at(controller, 40), position)
    np.testing.assert_allclose(controller.desired.velocity, velocity)


def test_a_measured_velocity_is_carried_into_the_first_segment(controller):
    send(controller, [point(100, [1, 1], [0, 0])], moving=[3, -3])
    at(controller, 0)
    np.testing.assert_allclose(controller.desired.velocity, [3, -3])


def test_a_future_start_keeps_the_running_trajectory_until_then(controller):
    send(controller, [point(100, [1, 1]), point(200, [0, 0])])
    send(controller, [point(50, [5, 5])], stamp_ns=NOW + 150 * MS, now_ns=NOW + 20 * MS)
    np.testing.assert_allclose(at(controller, 50), [0.5, 0.5])
    np.testing.assert_allclose(at(controller, 125), [0.75, 0.75])
    np.testing.assert_allclose(at(controller, 150), [0.5, 0.5])
    np.testing.assert_allclose(at(controller, 200), [5, 5])


def test_the_part_kept_before_a_future_start_keeps_its_shape(controller):
    rows = [point(100, [1, -1], [2, 0]), point(300, [2, 3], [0, 0])]
    send(controller, rows)
    other = JointTrajectoryController(JOINTS)
    send(other, rows)
    send(other, [point(100, [9, 9], [0, 0])], stamp_ns=NOW + 230 * MS)
    for time_ms in (0, 60, 100, 180, 229):
        np.testing.assert_allclose(at(other, time_ms), at(controller, time_ms), err_msg=time_ms)
    at(controller, 230 - 1e-3), at(other, 230 + 1e-3)
    np.testing.assert_allclose(
        other.desired.velocity, controller.desired.velocity, atol=0.02
    )


def test_a_future_start_after_the_running_end_waits_at_that_end(controller):
    send(controller, [point(100, [1, 1])])
    send(controller, [point(100, [2, 2])], stamp_ns=NOW + 300 * MS)
    np.testing.assert_allclose(at(controller, 50), [0.5, 0.5])
    np.testing.assert_allclose(at(controller, 250), [1, 1])
    np.testing.assert_allclose(at(controller, 350), [1.5, 1.5])


def test_a_future_start_while_holding_holds_until_then(controller):
    controller.hold(np.array([0.2, 0.3]))
    send(controller, [point(100, [1.2, 1.3])], stamp_ns=NOW + 100 * MS)
    np.testing.assert_allclose(at(controller, 90), [0.2, 0.3])
    np.testing.assert_allclose(at(controller, 150), [0.7, 0.8])


def test_a_trajectory_that_began_in_the_past_is_joined_where_it_is_now(controller):
    rows = [point(100, [1, 1]), point(200, [2, 2]), point(300, [4, 4])]
    assert send(controller, rows, stamp_ns=NOW - 250 * MS) is None
    np.testing.assert_allclose(at(controller, 0), [3, 3])


def test_a_new_trajectory_replaces_the_running_one(controller):
    send(controller, [point(100, [1, 1]), point(1000, [9, 9])])
    at(controller, 50)
    send(controller, [point(50, [0, 0])], now_ns=NOW + 50 * MS, at=[0.4, 0.4])
    np.testing.assert_allclose(at(controller, 100), [0, 0])
    np.testing.assert_allclose(at(controller, 900), [0, 0])


def test_names_not_order_decide_which_joint_moves(controller):
    send(controller, [point(100, [1, 2])], joints=("b", "a"))
    np.testing.assert_allclose(at(controller, 100), [2, 1])


# -- when it ends -------------------------------------------------------------------------------


def test_the_arm_stays_at_the_last_point(controller):
    send(controller, [point(100, [1, 2], [0, 0])])
    for time_ms in (100, 1000, 1_000_000):
        np.testing.assert_array_equal(at(controller, time_ms), [1, 2])
    assert controller.holding and controller.timeouts == 0


def test_an_empty_trajectory_stops_the_arm_where_it_is_measured(controller):
    send(controller, [point(1000, [1, 1])])
    at(controller, 500)
    assert send(controller, [], now_ns=NOW + 500 * MS, at=[0.4, 0.4]) is None
    np.testing.assert_array_equal(at(controller, 900), [0.4, 0.4])


def test_the_command_timeout_counts_from_the_last_point():
    controller = JointTrajectoryController(JOINTS, cmd_timeout_s=0.2)
    send(controller, [point(1000, [1, 1])])
    np.testing.assert_allclose(at(controller, 900, [0.8, 0.8]), [0.9, 0.9])
    np.testing.assert_allclose(at(controller, 1199, [0.95, 0.95]), [1, 1])
    assert controller.timeouts == 0
    np.testing.assert_allclose(at(controller, 1201, [0.97, 0.97]), [0.97, 0.97])
    np.testing.assert_allclose(at(controller, 2000, [0.5, 0.5]), [0.97, 0.97])
    assert controller.timeouts == 1


def test_a_new_trajectory_in_time_prevents_the_command_timeout():
    controller = JointTrajectoryController(JOINTS, cmd_timeout_s=0.2)
    send(controller, [point(100, [1, 1])])
    at(controller, 250)
    send(controller, [point(100, [2, 2])], now_ns=NOW + 250 * MS)
    at(controller, 350)
    assert controller.timeouts == 0


# -- refusals -----------------------------------------------------------------------------------

GOOD = [point(100, [1, 1])]
REFUSED = {
    "no_joint_names": (dict(points=GOOD, joints=()), "joint names"),
    "a_missing_joint": (dict(points=[point(100, [1])], joints=("a",)), "'b'.*missing"),
    "an_unknown_joint": (dict(points=GOOD, joints=("a", "x")), "'x'"),
    "a_repeated_joint": (dict(points=GOOD, joints=("a", "a")), "repeated"),
    "too_few_positions": (dict(points=[point(100, [1])]), "1 positions, expected 2"),
    "no_positions": (dict(points=[point(100, [], [1, 1])]), "0 positions"),
    "too_many_velocities": (dict(points=[point(100, [1, 1], [0, 0, 0])]), "3 velocities"),
    "too_few_accelerations": (
        dict(points=[point(100, [1, 1], [0, 0], [0])]),
        "1 accelerations",
    ),
    "times_that_stand_still": (dict(points=GOOD + GOOD), "rise"),
    "times_that_fall": (dict(points=[*GOOD, point(50, [1, 1])]), "rise"),
    "a_time_before_the_start": (dict(points=[point(-5, [1, 1])]), "before the start"),
    "an_end_in_the_past": (dict(points=GOOD, stamp_ns=NOW - 101 * MS), "past"),
    "a_nonzero_end_velocity": (dict(points=[point(100, [1, 1], [0, 0.1])]), "b.*velocity"),
    "nan": (dict(points=[point(100, [1, float("nan")])]), "NaN"),
    "infinity": (dict(points=[point(100, [1, 1], [float("inf"), 0])]), "infinite"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_trajectory_is_refused_in_words_and_changes_nothing_for(controller, case):
    send(controller, [point(1000, [1, 1])])
    at(controller, 0)
    arguments, text = REFUSED[case]
    refusal = send(controller, **arguments)
    assert refusal is not None
    assert re.search(text, refusal), refusal
    np.testing.assert_allclose(at(controller, 500), [0.5, 0.5])


def test_partial_trajectories_are_taken_only_where_allowed():
    controller = JointTrajectoryController(JOINTS, allow_partial=True)
    controller.hold(np.array([0.0, 7.0]))
    assert send(controller, [point(100, [1])], joints=("a",), at=[0, 7]) is None
    np.testing.assert_allclose(at(controller, 100), [1, 7])


def test_a_trajectory_that_ends_just_now_is_still_taken(controller):
    assert send(controller, GOOD, stamp_ns=NOW - 100 * MS) is None
    np.testing.assert_array_equal(at(controller, 0), [1, 1])


# -- forward commands ---------------------------------------------------------------------------


def test_the_last_forward_command_stays_in_force():
    forward = ForwardCommandController(JOINTS)
    assert forward.command is None
    assert forward.on_command([1.0, 2.0]) is None
    np.testing.assert_array_equal(forward.command, [1, 2])


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0]])
def test_a_forward_command_of_the_wrong_size_is_refused_with_both_sizes(values):
    forward = ForwardCommandController(JOINTS)
    forward.on_command([1.0, 2.0])
    assert f"has {len(values)} values, the controller has 2" in forward.on_command(values)
    np.testing.assert_array_equal(forward.command, [1, 2])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_forward_command_that_is_not_finite_is_ignored(bad):
    forward = ForwardCommandController(JOINTS)
    forward.on_command([1.0, 2.0])
    assert "for b is" in forward.on_command([3.0, bad])
    np.testing.assert_array_equal(forward.command, [1, 2])
