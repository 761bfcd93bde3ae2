# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Chunks that must not be played: refused and counted, or a latched stop."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402

from omni_ros.player.reasons import Reason, State  # noqa: E402

#: Slow chunks that outlast any delay of the machine.
LONG = {"observation_timeout_s": 60.0}


def long_line(rig, speed: float = 0.1) -> dict:
    """A chunk of 30 s in which all joints move steadily by `speed` until nearly its end."""
    times = np.minimum(0.1 * np.arange(1, 301), 8.0)
    return {"rows": rig.robot.home + speed * times[:, None], "dt_s": 0.1, "life_s": 60.0}


@pytest.fixture
def playing(player):
    """A player that follows a long chunk of the source "test"."""
    rig = player(**LONG)
    rig.source = rig.make_source()
    rig.source.send(**long_line(rig))
    rig.moving(0.05)
    return rig


def nan_rows(rig, value: float = math.nan) -> np.ndarray:
    rows = np.tile(rig.robot.home + 0.1, (10, 1))
    rows[3, 2] = value
    return rows


# -- not finite: trips -----------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_trips_and_the_measured_pose_is_held(player, value):
    rig = player()
    rig.make_source().send(nan_rows(rig, value))
    status = rig.until(State.TRIPPED)
    rig.settle(20)
    assert status.trip_reason == Reason.NON_FINITE
    assert rig.status.refused[Reason.NON_FINITE] == 1
    assert "1 of 60 values are NaN or infinite" in rig.status.last_refusal
    path = rig.path_of(rig.commands.messages)
    np.testing.assert_array_equal(path, np.tile(rig.robot.home, (len(path), 1)))


def test_a_trip_is_an_error_in_the_diagnostics(player):
    rig = player()
    diagnostics = rig.graph.record(DiagnosticArray, "/diagnostics")
    rig.make_source().send(nan_rows(rig))
    rig.until(State.TRIPPED)

    def state_error():
        return [s for m in diagnostics.messages for s in m.status
                if s.name.endswith("state") and s.level == DiagnosticStatus.ERROR]

    error = rig.eventually(state_error, "an ERROR in the diagnostics")[0]
    assert "TRIPPED" in error.message
    assert {v.key: v.value for v in error.values}["reasons"] == "NON_FINITE"


def test_nan_while_moving_brakes_within_the_limits_and_nothing_non_finite_leaves(playing):
    rig = playing
    rig.source.send(nan_rows(rig))
    rig.until(State.TRIPPED)
    rig.at_rest()
    rig.assert_within_limits(start=rig.robot.home)
    points = [p for m in rig.commands.messages for p in m.points]
    assert np.isfinite([[p.positions, p.velocities] for p in points]).all()


def test_nan_from_a_source_that_is_not_followed_trips_as_well(playing):
    rig = playing
    rig.make_source("other").send(nan_rows(rig))
    assert rig.until(State.TRIPPED).trip_reason == Reason.NON_FINITE


def test_a_tripped_player_refuses_good_chunks_and_does_not_move(player):
    rig = player()
    source = rig.make_source()
    source.send(nan_rows(rig))
    rig.until(State.TRIPPED)
    source.send(rig.robot.home + np.full((30, 1), 0.2))
    rig.eventually(lambda: rig.status.refused[Reason.NON_FINITE] == 2, "a refusal")
    assert "reset it first" in rig.status.last_refusal
    np.testing.assert_array_equal(rig.first(rig.commands.last), rig.robot.home)


def test_a_reset_too_soon_after_the_trip_is_refused_in_words(player):
    rig = player(reset_cooldown_s=20.0)
    rig.make_source().send(nan_rows(rig))
    rig.until(State.TRIPPED)
    answer = rig.trigger("reset")
    assert not answer.success
    assert "wait 20 s" in answer.message
    assert rig.status.state == State.TRIPPED


def test_after_a_reset_only_a_chunk_from_a_later_observation_moves_the_arm(player):
    rig = player()
    source = rig.make_source()
    late = source.message(rig.robot.home + np.full((60, 1), 0.2), life_s=60.0)
    source.send(nan_rows(rig))
    rig.until(State.TRIPPED)
    time.sleep(0.6)  # the cool-down
    assert rig.trigger("reset").success
    rig.until(State.HOLDING)
    source.chunk_id += 1
    late.chunk_id = source.chunk_id
    rig.chunks.publish(late)
    rig.eventually(lambda: rig.status.refused[Reason.OUT_OF_ORDER] == 1, "a refusal")
    assert "from before the reset" in rig.status.last_refusal
    np.testing.assert_array_equal(rig.first(rig.commands.last), rig.robot.home)
    source.send(rig.robot.home + np.full((30, 1), 0.2), age_s=0.0)
    rig.moving(0.05)


def test_a_protective_stop_brakes_within_the_limits_and_stays_until_reset(playing):
    rig = playing
    assert rig.trigger("protective_stop").success
    status = rig.until(State.TRIPPED)
    assert status.trip_reason == Reason.PROTECTIVE_STOP
    rig.at_rest()
    rig.source.send(**long_line(rig))
    rig.settle(10)
    assert rig.status.state == State.TRIPPED
    assert not np.any(rig.status.command_velocity)
    rig.assert_within_limits(start=rig.robot.home)


# -- anything else: refused, and what plays well goes on ----------------------------------------


def renamed(rig, old: str, new: str) -> list[str]:
    return [new if name == old else name for name in rig.robot.joint_names]


BAD = {
    "an id seen before": (
        Reason.OUT_OF_ORDER, "answers an earlier request", lambda rig: {"chunk_id": 1}),
    "an older observation": (
        Reason.OUT_OF_ORDER, "older than that of the last chunk", lambda rig: {"age_s": 20.0}),
    "an unknown joint": (
        Reason.BAD_JOINTS, "unknown ['elbow']",
        lambda rig: {"joint_names": renamed(rig, "elbow_flex", "elbow")}),
    "a repeated joint": (
        Reason.BAD_JOINTS, "['wrist_flex'] are repeated",
        lambda rig: {"joint_names": renamed(rig, "elbow_flex", "wrist_flex")}),
    "a joint left out": (
        Reason.BAD_JOINTS, "missing ['gripper']",
        lambda rig: {"joint_names": rig.robot.joint_names[:5]}),
    "other units": (
        Reason.BAD_UNITS, "but the robot YAML says", lambda rig: {"joint_units": ["deg"] * 6}),
    "no units": (
        Reason.BAD_UNITS, "but the robot YAML says", lambda rig: {"joint_units": []}),
    "too few values": (Reason.BAD_SHAPE, "expected 66", lambda rig: {"rows": 11}),
    "no rows": (Reason.BAD_SHAPE, "0 rows, expected 1 to 512", lambda rig: {"rows": 0}),
    "more rows than memory": (
        Reason.BAD_SHAPE, "(max_rows)", lambda rig: {"rows_sent": 513}),
    "velocities": (Reason.BAD_MODE, "plays positions", lambda rig: {"mode": 2}),
    "offsets without an anchor": (Reason.BAD_MODE, "anchor has 0", lambda rig: {"mode": 3}),
    "an unknown mode": (Reason.BAD_MODE, "control mode 0", lambda rig: {"mode": 0}),
    "no dt": (Reason.BAD_TIME, "dt is 0 s", lambda rig: {"dt_s": 0.0}),
    "no life": (Reason.BAD_TIME, "life 0 s", lambda rig: {"life_s": 0.0}),
    "a stamp in the future": (Reason.FUTURE_STAMP, "check the clocks", lambda rig: {"age_s": -5}),
    "rows all past": (Reason.CHUNK_STALE, "its last row was due", lambda rig: {"dt_s": 1e-6}),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_chunk_is_refused_and_counted_while_a_good_one_plays_on(playing, kind):
    rig = playing
    reason, text, change = BAD[kind]
    fields = change(rig)
    # From now on: a stamp of now is later than that of the good chunk.
    fields.setdefault("age_s", 0.0)
    rows = np.tile(rig.robot.home, (fields.pop("rows_sent", 10), 1))
    if "rows" in fields:
        message = rig.source.message(rows, **{k: v for k, v in fields.items() if k != "rows"})
        message.rows = fields["rows"]
        rig.chunks.publish(message)
    else:
        rig.source.send(rows, **fields)
    status = rig.eventually(lambda: (s := rig.status).refused[reason] == 1 and s, "a refusal")
    assert text in status.last_refusal
    assert sum(status.refused) == 1 and status.chunks_played == 1
    assert status.state in (State.RAMPING_IN, State.PLAYING)
    assert status.source == "test" and status.stops == 0
    rig.moving(0.05)


def test_a_chunk_of_another_source_is_refused_while_one_is_followed(playing):
    rig = playing
    rig.make_source("other").send(np.tile(rig.robot.home, (30, 1)))
    status = rig.eventually(
        lambda: (s := rig.status).refused[Reason.FOREIGN_SOURCE] == 1 and s, "a refusal")
    assert "'test' is followed now" in status.last_refusal
    assert status.source == "test"


def test_a_source_that_never_beat_is_refused(player):
    rig = player()
    rig.make_source(beats=False).send(np.tile(rig.robot.home, (30, 1)))
    rig.eventually(lambda: rig.status.refused[Reason.HEARTBEAT_LOST] == 1, "a refusal")
    assert "require_heartbeat: false" in rig.status.last_refusal
    assert rig.status.state == State.HOLDING


def test_columns_in_another_order_move_the_joints_they_name(player):
    rig = player(**LONG)
    goal = rig.robot.home + np.linspace(-0.2, 0.3, 6)
    rig.make_source().send(
        np.tile(goal[::-1], (300, 1)), life_s=60.0, joint_names=rig.robot.joint_names[::-1])
    rig.eventually(lambda: np.allclose(rig.first(rig.commands.last), goal, atol=1e-3), "the goal")


def test_targets_far_outside_the_limits_are_cut_to_them(player):
    rig = player(**LONG)
    rig.make_source().send(np.full((300, 6), 1e300), life_s=60.0)
    goal = rig.robot.upper - rig.robot.margin
    rig.eventually(lambda: np.allclose(rig.first(rig.commands.last), goal, atol=1e-3), "the limits")
    assert rig.status.limited[Reason.POSITION_LIMIT] > 0
    rig.assert_within_limits(start=rig.robot.home)


def test_each_refusal_is_logged_in_the_words_of_the_status(playing):
    rig = playing
    rig.source.send(np.tile(rig.robot.home, (10, 1)), age_s=0.0, joint_units=["deg"] * 6)
    rig.eventually(lambda: "chunk refused, BAD_UNITS" in rig.process.output, "a line in the log")
