# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The player's states: what enters them, what leaves them, what is said of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from omni_ros.player import Reason, State


def playing(rig):
    rig.sine(rows=60)
    rig.run(0.8)
    assert rig.status().state is State.PLAYING
    return rig


def assert_stops(rig, seconds=0.5):
    """The arm is braked from the next tick on and then held."""
    before = np.abs(rig.commands[-1].velocity)
    first = rig.tick()
    assert (np.abs(first.velocity) <= before + rig.robot.jerk * rig.period_s**2).all()
    commands = rig.run(seconds)
    assert not commands[-1].velocity.any()
    np.testing.assert_array_equal(commands[-1].position, commands[-2].position)


def test_before_activation_nothing_is_commanded(make_rig):
    rig = make_rig()
    assert rig.run(0.2) == []
    assert rig.status().state is State.INACTIVE


def test_until_all_joints_are_measured_nothing_is_commanded(make_rig):
    rig = make_rig()
    rig.sensing = False
    rig.player.activate(rig.now_ns)
    rig.player.on_joint_state(rig.robot.joint_names[:5], [0.0] * 5, [], rig.now_ns, rig.now_ns)
    assert rig.tick() is None
    assert rig.status().reasons == (Reason.NO_JOINT_STATE,)
    assert rig.sine().reason is Reason.NO_JOINT_STATE


def test_a_measurement_from_long_ago_is_not_started_from(make_rig):
    rig = make_rig()
    rig.tick()
    rig.sensing = False
    rig.run(1.0)
    rig.player.activate(rig.now_ns)
    assert rig.tick() is None
    assert Reason.JOINT_STATE_STALE in rig.status().reasons


def test_a_measurement_that_is_not_finite_does_not_count(make_rig):
    rig = make_rig(measured=np.full(6, math.nan))
    rig.player.activate(rig.now_ns)
    assert rig.tick() is None
    assert rig.status().reasons == (Reason.NO_JOINT_STATE,)


def test_on_activation_the_measured_pose_is_held(make_rig):
    rig = make_rig(measured=np.full(6, 0.1)).start()
    assert rig.status().state is State.HOLDING
    assert rig.commands[0].rebased
    for command in rig.commands:
        np.testing.assert_array_equal(command.position, np.full(6, 0.1))


def test_holding_outside_of_the_limits_does_not_move_the_arm_and_says_so(make_rig):
    pose = np.array([2.2, 0.0, 0.0, 0.0, 0.0, 0.0])
    rig = make_rig(measured=pose).start()
    np.testing.assert_array_equal(rig.commands[-1].position, pose)
    assert rig.status().reasons == (Reason.OUT_OF_LIMITS,)
    assert rig.status().joint_reasons[0] == Reason.OUT_OF_LIMITS
    rig.send(np.tile(pose + 0.5, (60, 1)))
    rig.run(1.5)
    assert rig.commands[-1].position[0] < 1.92


def test_when_rows_run_out_the_arm_brakes_and_says_starved(rig):
    rig.sine(rows=10)
    rig.run(0.32)
    assert_stops(rig)
    assert rig.status().state is State.STALE
    assert rig.status().reasons == (Reason.STARVED,)
    assert rig.player.counters.stops == 1


def test_a_chunk_that_outlives_its_life_is_not_played_on(rig):
    rig.sine(rows=60, life_s=0.8)
    rig.run(0.8)
    assert_stops(rig)
    assert rig.status().reasons == (Reason.CHUNK_STALE,)


def test_an_observation_too_old_is_not_played_on(make_rig):
    rig = make_rig(observation_timeout_s=0.7).start()
    rig.sine(rows=60)
    rig.run(0.7)
    assert_stops(rig)
    assert rig.status().reasons == (Reason.OBSERVATION_STALE,)


def test_when_heartbeats_end_the_arm_brakes(rig):
    playing(rig).beating = False
    rig.run(0.5)
    assert_stops(rig)
    assert rig.status().reasons == (Reason.HEARTBEAT_LOST,)


def test_when_joint_states_end_the_arm_brakes_and_no_chunk_is_taken(rig):
    playing(rig).sensing = False
    rig.run(0.26)
    assert_stops(rig)
    assert rig.status().reasons == (Reason.JOINT_STATE_STALE,)
    assert rig.sine().reason is Reason.JOINT_STATE_STALE


def test_joint_states_that_come_back_end_a_hold_that_only_they_disturbed(rig):
    rig.sensing = False
    rig.run(0.4)
    assert rig.status().state is State.STALE
    rig.sensing = True
    rig.tick()
    assert rig.status().state is State.HOLDING


def test_after_starving_a_fresh_chunk_resumes_from_row_0_through_the_ramp(rig):
    rig.sine(rows=10)
    rig.run(1.0)
    dropped = rig.player.counters.rows_dropped_late
    assert rig.send(np.tile(rig.measured + 0.2, (60, 1)), age_s=0.3) is None
    rig.tick()
    assert rig.status().state is State.RAMPING_IN
    assert rig.player.counters.rows_dropped_late == dropped
    rig.run(1.0)
    assert rig.status().state is State.PLAYING


def test_while_resting_stale_the_same_command_is_repeated(rig):
    rig.sine(rows=10)
    rig.run(1.0)
    for command in rig.run(1.0):
        np.testing.assert_array_equal(command.position, rig.commands[-1].position)
        assert not command.velocity.any()


def test_an_arm_moved_by_hand_while_held_resumes_from_where_it_is(rig):
    rig.frozen = True
    rig.measured = rig.measured + [0.3, 0.0, 0.0, 0.0, 0.0, 0.3]
    rig.run(0.3)
    rig.send(np.tile(rig.measured, (30, 1)))
    first = rig.tick()
    assert first.rebased
    assert first.position[0] == pytest.approx(rig.measured[0], abs=1e-3)
    # The gripper squeezes: its command is not where the jaw was stopped.
    assert first.position[5] == pytest.approx(rig.robot.home[5], abs=0.01)


def test_a_small_sag_does_not_move_the_command(rig):
    rig.frozen = True
    rig.measured = rig.measured - 0.03
    rig.run(0.3)
    rig.send(np.tile(rig.robot.home, (30, 1)))
    first = rig.tick()
    assert not first.rebased
    np.testing.assert_allclose(first.position, rig.robot.home, atol=1e-9)


# An arm that is not measured any more


def test_an_arm_at_rest_that_is_not_measured_is_not_commanded(rig):
    rig.sensing = False
    rig.run(0.3)
    assert rig.run(0.5) == []
    rig.sensing = True
    np.testing.assert_array_equal(rig.tick().position, rig.robot.home)


def test_a_moving_arm_that_is_not_measured_is_braked_to_rest_before_commands_end(rig):
    playing(rig).sensing = False
    commands = rig.run(1.0)
    assert not commands[-1].velocity.any() and len(commands[-1].tail_velocity) == 0
    assert len(commands) < 50


def test_an_arm_that_comes_back_elsewhere_is_held_there(rig):
    rig.sensing = False
    rig.run(0.5)
    rig.measured = rig.measured + [0.3, 0.0, 0.0, 0.0, 0.0, 0.3]
    rig.sensing = True
    first = rig.first_command()
    assert first.rebased
    np.testing.assert_array_equal(first.position[:5], rig.measured[:5])
    # The gripper goes on squeezing: a gap in the measurements must not drop what it holds.
    assert first.position[5] == rig.robot.home[5]


def test_a_tripped_arm_that_comes_back_elsewhere_is_held_there(rig):
    rig.player.protective_stop(True, rig.now_ns)
    rig.tick()
    rig.sensing = False
    rig.run(0.5)
    rig.measured = rig.measured - 0.2
    rig.sensing = True
    np.testing.assert_array_equal(rig.first_command().position[:5], rig.measured[:5])
    assert rig.status().state is State.TRIPPED


def test_a_player_that_sees_no_arm_can_be_deactivated(rig):
    rig.sensing = False
    rig.run(0.5)
    rig.player.deactivate(rig.now_ns)
    rig.run(0.1)
    assert rig.status().state is State.INACTIVE


# Protective stop and reset


def test_a_protective_stop_brakes_and_latches(rig):
    playing(rig).player.protective_stop(True, rig.now_ns)
    assert_stops(rig)
    rig.player.protective_stop(False, rig.now_ns)
    rig.run(1.0)
    status = rig.status()
    assert status.state is State.TRIPPED and status.trip_reason is Reason.PROTECTIVE_STOP
    assert rig.sine().reason is Reason.PROTECTIVE_STOP


def test_a_reset_within_the_cool_down_is_refused(rig):
    rig.player.protective_stop(True, rig.now_ns)
    rig.player.protective_stop(False, rig.now_ns)
    rig.run(0.4)
    done, text = rig.player.reset(rig.now_ns)
    assert not done and "0.400 s ago, wait 0.5 s" in text


def test_a_reset_while_the_stop_is_still_asked_for_is_refused(rig):
    rig.player.protective_stop(True, rig.now_ns)
    rig.run(1.0)
    done, text = rig.player.reset(rig.now_ns)
    assert not done and "still asked for" in text


def test_a_reset_while_braking_is_refused(make_rig):
    rig = playing(make_rig(reset_cooldown_s=0.0).start())
    rig.player.protective_stop(True, rig.now_ns)
    rig.player.protective_stop(False, rig.now_ns)
    rig.tick()
    done, text = rig.player.reset(rig.now_ns)
    assert not done and "braking" in text


def test_after_a_reset_the_arm_holds_until_a_chunk_from_a_later_observation(rig):
    playing(rig).player.protective_stop(True, rig.now_ns)
    rig.player.protective_stop(False, rig.now_ns)
    rig.run(1.0)
    assert rig.player.reset(rig.now_ns)[0]
    rig.tick()
    assert rig.status().state is State.HOLDING and rig.status().chunk_id == 0
    assert rig.sine(rows=60, age_s=0.3).reason is Reason.OUT_OF_ORDER
    assert rig.sine(rows=60) is None


def test_a_trip_outlives_deactivation(rig):
    rig.player.protective_stop(True, rig.now_ns)
    rig.player.protective_stop(False, rig.now_ns)
    rig.player.deactivate(rig.now_ns)
    rig.run(0.2)
    rig.player.activate(rig.now_ns)
    rig.run(0.2)
    assert rig.status().state is State.TRIPPED


def test_a_stop_asked_for_before_activation_is_in_force_after_it(make_rig):
    rig = make_rig()
    rig.player.protective_stop(True, rig.now_ns)
    rig.start()
    assert rig.status().state is State.TRIPPED


def test_a_reset_without_a_trip_is_harmless(rig):
    assert rig.player.reset(rig.now_ns)[0]
    assert rig.status().state is State.HOLDING


# Deactivation


def test_deactivation_brakes_says_rest_once_and_ends(rig):
    playing(rig).player.deactivate(rig.now_ns)
    assert Reason.SHUTDOWN in rig.status().reasons
    commands = rig.run(1.0)
    assert 1 < len(commands) < 25
    assert not commands[-1].velocity.any()
    assert rig.status().state is State.INACTIVE


def test_an_inactive_player_says_that_it_was_told_to_stop(rig):
    playing(rig).player.deactivate(rig.now_ns)
    rig.run(1.0)
    assert rig.status().reasons == (Reason.SHUTDOWN,)


def test_a_new_activation_ends_the_word_of_the_last_stop(rig):
    rig.player.deactivate(rig.now_ns)
    rig.run(0.2)
    rig.player.activate(rig.now_ns)
    assert Reason.SHUTDOWN not in rig.status().reasons


def test_deactivation_at_rest_sends_one_last_hold(rig):
    rig.player.deactivate(rig.now_ns)
    commands = rig.run(0.2)
    assert len(commands) == 1
    np.testing.assert_array_equal(commands[0].position, rig.robot.home)


def test_while_deactivating_no_chunk_is_taken(rig):
    playing(rig).player.deactivate(rig.now_ns)
    assert rig.sine().reason is Reason.SHUTDOWN


# Which chunks are taken


def test_a_chunk_from_another_source_is_refused_while_one_is_followed(rig):
    playing(rig)
    rig.player.on_heartbeat("other", rig.now_ns)
    assert rig.sine(source="other").reason is Reason.FOREIGN_SOURCE
    assert rig.status().source == "test"


def test_another_source_takes_over_once_the_first_went_stale(rig):
    rig.sine(rows=10)
    rig.run(1.0)
    rig.player.on_heartbeat("other", rig.now_ns)
    assert rig.send(np.tile(rig.measured, (30, 1)), source="other") is None
    assert rig.status().source == "other"


@pytest.mark.parametrize("source", ["", " "])
def test_a_chunk_that_names_no_source_is_refused_with_what_to_do(rig, source):
    rig.player.on_heartbeat(source, rig.now_ns)
    refusal = rig.sine(source=source)
    assert refusal.reason is Reason.FOREIGN_SOURCE and "fill in `source`" in refusal.text


def test_other_heartbeats_never_push_out_the_source_that_is_followed(rig):
    playing(rig)
    rig.beating = False
    for index in range(40):
        rig.player.on_heartbeat(f"other {index}", rig.now_ns)
    assert rig.sine(chunk_id=1).reason is Reason.OUT_OF_ORDER
    rig.run(0.52)
    assert rig.status().reasons == (Reason.HEARTBEAT_LOST,)


@pytest.mark.parametrize("chunk_id", [0, 1])
def test_a_late_answer_to_an_earlier_request_is_dropped(rig, chunk_id):
    playing(rig)
    assert rig.sine(chunk_id=chunk_id).reason is Reason.OUT_OF_ORDER


def test_a_chunk_from_an_older_observation_is_dropped(rig):
    playing(rig)
    rig.sine(rows=60)
    rig.run(0.1)
    assert rig.sine(rows=60, age_s=0.2).reason is Reason.OUT_OF_ORDER


def test_a_chunk_older_than_its_life_is_refused(rig):
    assert rig.sine(age_s=0.5, life_s=0.4).reason is Reason.CHUNK_STALE


def test_a_chunk_from_too_old_an_observation_is_refused(rig):
    assert rig.sine(age_s=2.1).reason is Reason.OBSERVATION_STALE


def test_a_chunk_from_the_future_is_refused(rig):
    refusal = rig.sine(age_s=-0.2)
    assert refusal.reason is Reason.FUTURE_STAMP and "0.200 s" in refusal.text


def test_a_chunk_slightly_in_the_future_is_taken(rig):
    assert rig.sine(age_s=-0.04) is None


def test_a_chunk_whose_rows_have_all_passed_does_not_replace_a_good_one(rig):
    playing(rig)
    assert rig.sine(rows=3, age_s=0.2).reason is Reason.CHUNK_STALE
    rig.tick()
    assert rig.status().state is State.PLAYING


def test_a_source_without_a_heartbeat_is_refused_with_what_to_do(make_rig):
    rig = make_rig()
    rig.beating = False
    rig.start()
    refusal = rig.sine()
    assert refusal.reason is Reason.HEARTBEAT_LOST and "require_heartbeat: false" in refusal.text


def test_a_source_without_a_heartbeat_is_played_where_none_is_required(make_rig):
    rig = make_rig(require_heartbeat=False)
    rig.beating = False
    rig.start()
    assert rig.sine() is None


def test_a_restarted_source_may_count_its_chunks_from_1_again(rig):
    playing(rig)
    rig.player.on_source_exit(rig.source, rig.now_ns)
    rig.run(1.0)
    assert rig.send(np.tile(rig.measured, (30, 1)), chunk_id=1) is None


def test_refused_chunks_never_disturb_one_that_plays(rig):
    playing(rig)
    rows = np.tile(rig.robot.home, (5, 1))
    for changes in (
        {"joint_names": ["x"] * 6}, {"joint_units": ["deg"] * 6}, {"rows": 4}, {"dt_ns": 0},
        {"control_mode": 2}, {"chunk_id": 0}, {"stamp_ns": 0}, {"stamp_ns": 2**62},
    ):  # fmt: skip
        assert rig.send(rows, **changes) is not None
        rig.next_id = 10
        rig.tick()
        assert rig.status().state is State.PLAYING
    assert sum(rig.player.counters.refused) == 8


# Time


def test_a_late_tick_goes_on_along_the_plan_the_controller_has(rig):
    playing(rig)
    before = rig.commands[-1]
    command = rig.tick(after_ns=2 * rig.period_ns)
    assert command.periods == 2
    assert rig.player.counters.ticks_missed == 1
    step = np.abs(command.position - before.ahead_position[0])
    assert (step <= rig.robot.velocity * rig.period_s).all()


def test_with_a_forward_controller_a_missed_tick_does_not_move_the_arm(make_rig):
    rig = playing(make_rig(output="forward_position").start())
    before = rig.commands[-1]
    command = rig.tick(after_ns=3 * rig.period_ns)
    step = np.abs(command.position - before.position)
    assert (step <= rig.robot.velocity * rig.period_s).all()


@pytest.mark.parametrize("periods", [3, 5, 20, 45])
def test_with_a_forward_controller_the_arm_starts_from_rest_after_missed_ticks(make_rig, periods):
    rig = playing(make_rig(output="forward_position").start())
    before = rig.commands[-1]
    assert np.abs(before.velocity).max() > 0.1
    command = rig.tick(after_ns=periods * rig.period_ns)
    step = command.position - before.position
    assert (np.abs(step) <= rig.robot.jerk * rig.period_s**3 * (1 + 1e-6)).all()
    rig.run(0.3)


def test_after_a_long_pause_the_arm_is_where_its_last_plan_ended(rig):
    playing(rig)
    end = rig.commands[-1].tail_position[-1]
    command = rig.tick(after_ns=900 * 10**6)
    np.testing.assert_allclose(command.position, end, atol=0.01)


def test_a_leap_of_the_clock_empties_the_queue_but_trips_nothing(rig):
    playing(rig)
    rig.tick(after_ns=3600 * 10**9)
    status = rig.status()
    assert status.state is State.STALE and status.reasons == (Reason.CLOCK_JUMP,)
    assert rig.send(np.tile(rig.measured, (30, 1))) is None


def test_a_leap_of_the_clock_while_holding_changes_nothing(rig):
    rig.tick(after_ns=3600 * 10**9)
    assert rig.status().state is State.HOLDING


def reset_rig(rig):
    rig.player.protective_stop(True, rig.now_ns)
    rig.player.protective_stop(False, rig.now_ns)
    rig.run(1.0)
    assert rig.player.reset(rig.now_ns)[0]
    return rig


def test_a_pause_does_not_let_in_a_chunk_decided_before_a_reset(rig):
    reset_rig(rig).tick(after_ns=1500 * 10**6)
    assert rig.sine(rows=60, age_s=1.6).reason is Reason.OUT_OF_ORDER
    assert rig.sine(rows=60) is None


def test_a_clock_that_went_back_before_a_reset_does_not_lock_out_chunks(rig):
    reset_rig(rig).tick(after_ns=-3600 * 10**9)
    assert rig.sine(rows=60) is None


# Velocity output


def test_in_velocity_mode_positions_are_refused_and_velocities_are_not(velocity_rig):
    rig = velocity_rig
    assert rig.send(np.zeros((5, 6)), control_mode=1).reason is Reason.BAD_MODE
    assert rig.send(np.zeros((5, 6))) is None


def test_in_velocity_mode_the_arm_stops_before_its_position_limits(velocity_rig):
    rig = velocity_rig
    for _ in range(40):
        rig.send(np.full((30, 6), 1.0))
        rig.run(0.1)
    assert (rig.measured <= rig.robot.upper).all()
    assert np.abs(rig.commands[-1].velocity).max() < 0.01
    assert rig.status().joint_reasons == (Reason.POSITION_LIMIT,) * 6


def test_starving_in_velocity_mode_ends_in_zero_velocity(velocity_rig):
    rig = velocity_rig
    rig.send(np.full((10, 6), 0.5))
    commands = rig.run(1.0)
    assert not commands[-1].velocity.any()
    assert rig.status().reasons == (Reason.STARVED,)


# What is said


def test_the_status_has_the_fields_of_the_message(rig):
    import re
    from dataclasses import fields
    from pathlib import Path

    text = (Path(__file__).parents[2] / "msg" / "PlayerStatus.msg").read_text(encoding="utf-8")
    message = set(re.findall(r"^[\w/]+(?:\[\])? (\w+)(?:\s|$)", text, flags=re.MULTILINE))
    node = {
        "header", "sequence", "dry_run", "observation_stamp", "realtime",
        "lateness_p50", "lateness_p99", "lateness_max", "last_refusal",
    }  # fmt: skip
    status = rig.status()
    core = {f.name for f in fields(status)} - {"stamp_ns", "observation_stamp_ns", "counters"}
    assert message - node == core | {f.name for f in fields(status.counters)}


def test_ages_are_nan_where_there_is_nothing_to_measure(rig):
    status = rig.status()
    assert math.isnan(status.observation_age) and math.isnan(status.heartbeat_age)
    assert status.joint_state_age == 0.0


def test_limited_ticks_are_counted_by_reason(rig):
    rig.send(np.tile(rig.robot.home + [9.0, 0, 0, 0, 0, 0], (60, 1)))
    rig.run(1.0)
    assert rig.player.counters.limited[Reason.POSITION_LIMIT] > 10
    assert rig.status().joint_reasons[0] == Reason.POSITION_LIMIT


def test_a_status_says_why_in_plain_words(rig):
    playing(rig).beating = False
    rig.run(0.6)
    assert rig.status().text.startswith("STALE: the heartbeat stopped: 0.5")


# A preferred source


def follow_other(rig):
    rig.player.on_heartbeat("other", rig.now_ns)
    return rig.sine(source="other")


def test_a_preferred_source_takes_over_from_the_one_that_plays_without_a_stop(rig):
    playing(rig)
    rig.player.prefer("other")
    assert follow_other(rig) is None
    rig.run(0.1)
    assert rig.status().source == "other"
    assert rig.status().state in (State.RAMPING_IN, State.PLAYING)
    assert rig.player.counters.stops == 0


def test_in_an_ensemble_a_source_that_takes_over_is_not_averaged_with_the_one_before(make_rig):
    rig = playing(make_rig(switching="ensemble", ensemble_coeff=0.0).start())
    rig.player.prefer("other")
    rig.player.on_heartbeat("other", rig.now_ns)
    away = rig.robot.home + 0.1 * (rig.robot.upper - rig.robot.lower)
    assert rig.path(lambda t: away, rows=45, source="other") is None
    rig.beating = False  # of the one before
    for _ in range(round(1.2 / rig.period_s)):
        rig.player.on_heartbeat("other", rig.now_ns)
        rig.run(rig.period_s)
    np.testing.assert_allclose(rig.commands[-1].position, away, atol=1e-3)
    assert rig.player.counters.stops == 0


def test_a_preference_alone_changes_nothing(rig):
    playing(rig)
    before = rig.status().source
    rig.player.prefer("other")
    rig.run(0.1)
    assert rig.status().source == before and rig.status().state is State.PLAYING


def test_whom_nobody_prefers_any_more_is_refused_again(rig):
    playing(rig)
    rig.player.prefer("other")
    rig.player.prefer("")
    assert follow_other(rig).reason is Reason.FOREIGN_SOURCE


def test_a_preferred_source_without_a_heartbeat_is_refused_as_any(rig):
    playing(rig)
    rig.player.prefer("other")
    rig.player.on_heartbeat("other", rig.now_ns)
    rig.player.on_source_exit("other", rig.now_ns)
    assert rig.sine(source="other").reason is Reason.HEARTBEAT_LOST


def test_a_preferred_source_whose_process_ends_while_it_plays_stops_the_arm(rig):
    playing(rig)
    rig.player.prefer("other")
    follow_other(rig)
    rig.run(0.1)
    rig.player.on_source_exit("other", rig.now_ns)
    rig.run(0.1)
    assert rig.status().state is State.STALE
