# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What wrong joint states can do to the command: nothing."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.player import Reason, State


def sample(rig, position):
    """One sample of all joints, between two ticks."""
    rig.now_ns += 10**6
    rig.player.on_joint_state(
        rig.robot.joint_names, list(position), [], rig.now_ns, rig.now_ns
    )


def moved(rig, joint: int, by: float):
    return rig.measured + by * np.eye(len(rig.measured))[joint]


def largest_step(commands):
    return np.abs(np.diff([c.position for c in commands], axis=0)).max()


@pytest.mark.parametrize("by", [0.5, 1.2, 50.0, 1e300])
def test_one_wrong_sample_before_the_first_command_is_not_started_from(make_rig, by):
    rig = make_rig()
    rig.player.activate(rig.now_ns)
    sample(rig, moved(rig, 0, by))
    first = rig.first_command()
    np.testing.assert_array_equal(first.position, rig.robot.home)


@pytest.mark.parametrize("by", [0.5, 1.2, 50.0, 1e300])
def test_one_wrong_sample_before_a_chunk_does_not_step_the_command(rig, by):
    sample(rig, moved(rig, 0, by))
    assert rig.send(np.tile(rig.robot.home, (60, 1))) is None
    before = rig.commands[-1]
    assert largest_step([before, *rig.run(0.5)]) < 1e-6


def test_one_wrong_sample_before_a_chunk_after_starving_does_not_step_the_command(rig):
    rig.sine(rows=10)
    rig.run(1.0)
    before = rig.commands[-1]
    sample(rig, moved(rig, 0, 1.2))
    assert rig.send(np.tile(before.position, (60, 1))) is None
    assert largest_step([before, *rig.run(0.5)]) < 1e-6


@pytest.mark.parametrize("by", [1.2, 50.0, 1e300])
def test_one_wrong_sample_after_lost_joint_states_is_not_taken_over(rig, by):
    rig.sensing = False
    rig.run(0.5)
    sample(rig, moved(rig, 0, by))
    assert rig.player.tick(rig.now_ns) is None
    refusal = rig.send(np.tile(rig.robot.home, (60, 1)))
    assert refusal.reason is Reason.JOINT_STATE_STALE and "not agreed" in refusal.text
    rig.sensing = True
    np.testing.assert_array_equal(rig.first_command().position, rig.robot.home)


def test_one_sample_is_not_a_pose_at_rest_however_long_ago_it_came(make_rig):
    rig = make_rig()
    rig.player.activate(rig.now_ns)
    rig.tick()
    rig.sensing = False
    assert rig.run(0.2) == []
    assert rig.status().reasons == (Reason.NO_JOINT_STATE,)
    assert "have not agreed on a pose at rest for 0.1 s" in rig.status().text


def test_joints_in_messages_of_their_own_must_each_agree(make_rig):
    rig = make_rig()
    rig.sensing = False
    rig.player.activate(rig.now_ns)
    names = rig.robot.joint_names
    sample(rig, rig.measured)
    for _ in range(10):
        rig.player.on_joint_state(names[:5], rig.measured[:5].tolist(), [], rig.now_ns, rig.now_ns)
        assert rig.tick() is None


def test_an_arm_that_moves_is_waited_for_at_the_start(make_rig):
    rig = make_rig()
    rig.player.activate(rig.now_ns)
    for _ in range(20):
        rig.measured = rig.measured + 0.02
        assert rig.tick() is None
    assert rig.status().state is State.WAITING
    np.testing.assert_array_equal(rig.first_command().position, rig.measured)


@pytest.mark.parametrize("by", [3.0, 50.0, 1e300])
def test_a_start_far_outside_of_the_limits_commands_nothing_and_names_the_joint(make_rig, by):
    rig = make_rig()
    rig.measured = moved(rig, 0, by)
    rig.player.activate(rig.now_ns)
    assert rig.run(0.5) == []
    status = rig.status()
    assert status.state is State.WAITING and status.reasons == (Reason.OUT_OF_LIMITS,)
    limits = f"limits {rig.robot.lower[0]:g} to {rig.robot.upper[0]:g}"
    assert "joint shoulder_pan is measured at" in status.text and limits in status.text


def test_an_arm_that_comes_back_far_outside_of_the_limits_is_not_commanded(rig):
    rig.sensing = False
    rig.run(0.5)
    good, rig.measured = rig.measured, moved(rig, 0, 50.0)
    rig.sensing = True
    assert rig.run(0.5) == []
    status = rig.status()
    assert status.state is State.STALE and Reason.OUT_OF_LIMITS in status.reasons
    assert "shoulder_pan" in status.text
    assert rig.sine().reason is Reason.OUT_OF_LIMITS
    rig.measured = good
    np.testing.assert_array_equal(rig.first_command().position, good)
    assert rig.status().state is State.HOLDING


def test_a_held_arm_measured_far_outside_of_the_limits_is_not_commanded_on(rig):
    rig.frozen = True
    rig.measured = moved(rig, 0, 50.0)
    rig.run(0.2)
    assert rig.run(0.5) == []
    assert rig.status().state is State.STALE and rig.status().reasons == (Reason.OUT_OF_LIMITS,)
    assert rig.send(np.tile(rig.robot.home, (60, 1))).reason is Reason.OUT_OF_LIMITS


def test_in_velocity_mode_a_wrong_sample_does_not_lose_the_estimate(velocity_rig):
    rig = velocity_rig
    rig.send(np.full((60, 6), 0.1))
    rig.run(0.5)
    sample(rig, moved(rig, 0, 1e300))
    rig.player.tick(rig.now_ns)
    assert np.abs(rig.status().command_position).max() < 10.0


def test_a_far_pose_is_not_taken_over_by_a_chunk_that_follows_one_that_stood_still(rig):
    rig.frozen = True
    rig.send(np.tile(rig.robot.home, (60, 1)))
    rig.run(0.8)
    rig.measured = moved(rig, 0, 50.0)
    rig.run(0.2)
    rig.player.on_source_exit(rig.source, rig.now_ns)
    rig.player.on_heartbeat(rig.source, rig.now_ns)
    rig.send(np.tile(rig.robot.home, (60, 1)))
    before = rig.commands[-1]
    assert largest_step([before, *rig.run(0.3)]) < 1e-6


def test_the_joint_that_is_named_is_the_one_farthest_outside(make_rig):
    rig = make_rig()
    rig.measured = np.where(np.arange(6) == 3, 50.0, rig.robot.upper + 0.01)
    rig.player.activate(rig.now_ns)
    rig.run(0.3)
    assert "joint wrist_flex is measured at 50 rad" in rig.status().text
