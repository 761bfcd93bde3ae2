# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Faults reported from the field, each as a test of the player in simulated time."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.player import ControlMode, Reason, State, command_points

# First chunk: warm-up latency skipped most of it and the arm leapt.


def test_a_slow_first_chunk_starts_at_row_0_next_to_the_measured_pose(rig):
    rows = rig.robot.home + np.linspace(0.0, 0.5, 30)[:, None]
    assert rig.send(rows, age_s=0.7) is None
    first = rig.tick()
    step_limit = rig.robot.jerk * rig.period_s**3
    assert (np.abs(first.position - rig.measured) <= step_limit + 1e-12).all()
    assert rig.status().state is State.RAMPING_IN
    assert rig.player.counters.rows_dropped_late == 0
    rig.run(0.97)
    # Row 29 is due one second after the start, not 0.3 s (its age taken off).
    np.testing.assert_allclose(rig.commands[-1].position, rows[-1], atol=0.03)


def test_the_age_of_the_first_observation_is_told_truly_although_its_rows_are_shifted(rig):
    rig.send(np.tile(rig.robot.home, (30, 1)), age_s=0.7)
    rig.run(0.2)
    assert rig.status().observation_age == pytest.approx(0.9, abs=1e-6)


def test_a_first_chunk_far_from_the_arm_is_ramped_into(rig):
    rig.send(np.tile(rig.robot.home + 0.8, (60, 1)), age_s=0.1)
    commands = rig.run(1.8)
    step_limit = rig.robot.jerk * rig.period_s**3
    assert (np.abs(commands[0].position - rig.robot.home) <= step_limit).all()
    assert np.abs(commands[-1].position - rig.robot.home - 0.8).max() < 0.01


def test_while_the_arm_is_pushed_rows_are_played_by_the_clock(rig):
    rig.frozen = True
    for _ in range(5):
        rig.measured = rig.measured + 0.05
        rig.tick()
    rig.send(np.tile(rig.robot.home, (30, 1)), age_s=0.7)
    assert rig.player.counters.rows_dropped_late == 21


def test_a_later_chunk_is_played_by_the_clock_and_its_late_rows_are_dropped(rig):
    rig.sine(rows=60)
    rig.run(0.5)
    rig.sine(rows=60, age_s=0.35)
    assert rig.player.counters.rows_dropped_late == 10


# Relative actions were anchored anew on each tick.


def test_offsets_stay_fixed_to_the_observation_while_the_arm_moves(rig):
    anchor = rig.robot.home.copy()
    rows = np.full((60, 6), 0.01)
    rig.send(rows, control_mode=int(ControlMode.POSITION_OFFSET), anchor=anchor)
    rig.run(1.5)
    np.testing.assert_allclose(rig.commands[-1].position, anchor + 0.01, atol=1e-4)


# Stalls of seconds between chunks.


def test_a_minute_of_slow_inference_leaves_no_gap_between_commands(rig):
    latency_s, due_ns, asked_ns, ids = 0.35, None, rig.now_ns, set()
    while len(rig.commands) < 60 / rig.period_s:
        if due_ns is None:
            due_ns, asked_ns = rig.now_ns + round(latency_s * 1e9), rig.now_ns
        elif rig.now_ns >= due_ns:
            assert rig.sine(rows=50, age_s=(rig.now_ns - asked_ns) * 1e-9) is None
            due_ns = None
        assert rig.tick() is not None
        ids.add(rig.status().chunk_id)
    assert len(ids) >= 60
    assert rig.player.counters.stops == 0


# Velocities fell to zero at each new trajectory.


@pytest.mark.parametrize("switching", ["latest", "blend", "ensemble"])
def test_chunks_of_a_sine_at_5_hz_are_joined_without_a_dip_in_velocity(make_rig, switching):
    rig = make_rig(switching=switching).start()
    points = []
    for step in range(200):
        if step % 10 == 0:
            rig.sine(amplitude=0.3, rows=20, age_s=0.06)
        points.append(command_points(rig.tick(), rig.period_ns)[0])
    velocities = np.array([point.velocities for point in points[50:]])
    seam = np.abs(np.diff(velocities, axis=0))
    assert (seam <= rig.robot.acceleration * rig.period_s).all()
    assert (np.abs(velocities) > 0.0).all()
    # No dip: at its fastest the joint is as fast as the sine.
    fastest = np.abs(velocities[:, 0]).reshape(3, 50).max(axis=1)
    np.testing.assert_allclose(fastest, 0.3 * np.pi, rtol=0.05)


# Forward controllers keep the last velocity for ever.


def test_when_the_process_of_the_source_dies_velocities_brake_within_two_periods(velocity_rig):
    rig = velocity_rig
    rig.send(np.full((60, 6), 0.5))
    rig.run(0.8)
    before = rig.commands[-1].velocity
    rig.player.on_source_exit(rig.source, rig.now_ns)
    rig.beating = False
    first = rig.tick()
    assert (np.abs(first.velocity) < np.abs(before)).all()
    assert rig.status().state is State.STALE
    assert Reason.HEARTBEAT_LOST in rig.status().reasons
    commands = rig.run(0.5)
    assert not commands[-1].velocity.any()


def test_when_the_process_of_the_source_dies_positions_are_held(rig):
    rig.sine(rows=60)
    rig.run(0.8)
    rig.player.on_source_exit(rig.source, rig.now_ns)
    commands = rig.run(0.5)
    np.testing.assert_array_equal(commands[-1].position, commands[-2].position)
    assert rig.status().state is State.STALE


def test_a_chunk_still_on_its_way_from_a_dead_process_is_refused(rig):
    rig.sine(rows=60)
    rig.run(0.5)
    rig.player.on_source_exit(rig.source, rig.now_ns)
    assert rig.sine(rows=60).reason is Reason.HEARTBEAT_LOST


# NaN reached hardware.


def test_nan_in_one_row_trips_and_holds_the_pose(rig):
    rows = np.tile(rig.robot.home + 0.1, (10, 1))
    rows[3, 2] = np.nan
    refusal = rig.send(rows)
    assert refusal.reason is Reason.NON_FINITE
    commands = rig.run(0.5)
    for command in commands:
        np.testing.assert_array_equal(command.position, rig.robot.home)
    status = rig.status()
    assert status.state is State.TRIPPED
    assert status.trip_reason is Reason.NON_FINITE
    assert status.counters.refused[Reason.NON_FINITE] == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_while_moving_brakes_within_the_limits(rig, bad):
    rig.sine(rows=60)
    rig.run(0.8)
    assert np.abs(rig.commands[-1].velocity).max() > 0.1
    rig.send(np.full((5, 6), bad))
    commands = rig.run(1.0)
    assert not commands[-1].velocity.any()
    assert rig.status().state is State.TRIPPED


# "Ends in the past".


def test_a_hundred_messages_of_a_moving_arm_are_all_taken_by_the_controller(rig, accepted):
    for step in range(100):
        if step % 10 == 0:
            rig.sine(rows=20, age_s=0.05)
        command = rig.tick()
        assert accepted(rig, command) is None
        assert command_points(command, rig.period_ns)[0].time_from_start_ns >= rig.period_ns


# Simulated time that starts at zero.


def test_without_a_clock_nothing_is_commanded(make_rig):
    rig = make_rig(start_ns=0)
    rig.player.activate(0)
    for _ in range(150):
        assert rig.tick(after_ns=0) is None
    status = rig.status()
    assert status.state is State.WAITING and status.reasons == (Reason.NO_CLOCK,)


def test_the_first_time_on_the_clock_makes_nothing_stale(make_rig):
    rig = make_rig(start_ns=0)
    rig.player.activate(0)
    rig.tick(after_ns=0)
    rig.tick(after_ns=10**18)
    rig.first_command()
    assert rig.status().state is State.HOLDING
    assert rig.status().reasons == ()
    rig.run(0.3)
    assert rig.sine() is None


# A bag in a loop: time goes back.


def test_time_going_back_empties_the_queue_and_brakes_without_a_jump(rig):
    rig.sine(rows=60)
    rig.run(0.8)
    rig.tick(after_ns=-60 * 10**9)
    assert rig.status().state is State.STALE
    assert Reason.CLOCK_JUMP in rig.status().reasons
    rig.run(0.5)
    assert rig.player.at_rest
    assert rig.send(np.tile(rig.measured, (30, 1)), chunk_id=1) is None
