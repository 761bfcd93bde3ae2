# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From rest into motion, over DDS: the first chunk, and what comes before it."""

from __future__ import annotations

import numpy as np

from omni_ros.player.reasons import Reason, State


def line(rig, *, rows: int = 30, step: float = 0.02) -> np.ndarray:
    """Rows that leave home steadily, then stay for the last third."""
    way = step * np.minimum(np.arange(1, rows + 1), 2 * rows // 3)
    return rig.robot.home + way[:, None]


def test_a_hold_repeats_the_measured_pose_exactly(player):
    rig = player()
    rig.settle(20)
    path = rig.path_of(rig.commands.messages)
    np.testing.assert_array_equal(path, np.tile(rig.robot.home, (len(path), 1)))


def test_nothing_is_commanded_before_every_joint_has_been_measured(player):
    rig = player(arm=False)
    rig.make_arm(names=rig.robot.joint_names[:5], position=rig.robot.home[:5])
    status = rig.until(State.WAITING)
    rig.settle(10)
    assert list(status.reasons) == [Reason.NO_JOINT_STATE]
    assert len(rig.commands) == 0
    rig.make_arm(names=rig.robot.joint_names[5:], position=rig.robot.home[5:])
    rig.until(State.HOLDING)


def test_joints_measured_by_several_drivers_are_put_together_and_stay_fresh(player):
    rig = player(arm=False)
    for joint in range(6):
        rig.make_arm(names=[rig.robot.joint_names[joint]], position=[rig.robot.home[joint]])
    rig.until(State.HOLDING)
    rig.settle(50)
    assert State.STALE not in {m.state for m in rig.statuses.messages}


def test_a_slow_first_chunk_starts_at_row_0_within_one_step_of_the_measured_pose(player):
    rig = player()
    rows = line(rig)
    begin = len(rig.commands)
    rig.make_source().send(rows, age_s=0.7)
    rig.until(State.STALE)
    path = rig.path_of(rig.commands.messages[begin:])
    moves = np.flatnonzero(np.abs(path - rig.robot.home).max(axis=1) > 0)
    step_limit = rig.robot.jerk * rig.period_s**3
    assert (np.abs(path[moves[0]] - rig.robot.home) <= step_limit + 1e-9).all()
    # Had it begun at row 21, it would be ahead of a line that starts with row 0 at once.
    ticks = np.arange(len(path) - moves[0]) + 3
    ahead = path[moves[0]:] - (rig.robot.home + 0.02 * 30 * rig.period_s * ticks[:, None])
    assert rig.status.ticks_missed or ahead.max() < 0.02
    assert rig.status.rows_dropped_late == 0
    np.testing.assert_allclose(path[-1], rows[-1], atol=0.01)


def test_the_age_of_a_slow_first_observation_is_told_truly(player):
    rig = player()
    rig.make_source().send(line(rig), age_s=0.7)
    status = rig.until(State.RAMPING_IN)
    assert 0.7 <= status.observation_age < 2.0
    assert status.chunk_age <= status.observation_age - 0.69


def test_a_first_chunk_far_from_the_arm_is_eased_into_within_the_limits(player):
    rig = player()
    goal = rig.robot.home + 0.8
    rig.make_source().send(np.tile(goal, (55, 1)), age_s=0.1)
    rig.eventually(lambda: np.allclose(rig.first(rig.commands.last), goal, atol=0.01), "the goal")
    rig.assert_within_limits(start=rig.robot.home)
    assert State.RAMPING_IN in {m.state for m in rig.statuses.messages}


def test_a_first_observation_that_is_too_old_moves_nothing(player):
    rig = player()
    rig.make_source().send(line(rig), age_s=2.5, life_s=10.0)
    rig.eventually(lambda: rig.status.refused[Reason.OBSERVATION_STALE] == 1, "a refusal")
    assert "limit 2 s" in rig.status.last_refusal
    np.testing.assert_array_equal(rig.first(rig.commands.last), rig.robot.home)


def test_after_a_starved_stop_the_next_slow_chunk_starts_at_row_0_again(player):
    rig = player()
    source = rig.make_source()
    source.send(line(rig, rows=12))
    rig.until(State.STALE)
    rig.at_rest()
    rig.settle(10)
    stood = rig.first(rig.commands.last)
    begin = len(rig.commands)
    source.send(stood - 0.02 * np.arange(1, 31)[:, None], age_s=0.3)
    rig.until(State.STALE, "again")
    rig.eventually(lambda: rig.statuses.last.chunks_played == 2, "two chunks")
    rig.moving()
    rig.until(State.STALE, "again")
    assert rig.status.rows_dropped_late == 0
    rig.assert_within_limits(rig.commands.messages[begin:], start=stood)


def test_an_arm_moved_by_hand_while_it_held_sets_off_from_where_it_is(player):
    rig = player()
    rig.arm.follows = False
    moved = rig.robot.home + 0.3
    rig.arm.position = moved
    rig.settle(20)
    np.testing.assert_array_equal(rig.first(rig.commands.last), rig.robot.home)
    begin = len(rig.commands)
    rig.make_source().send(np.tile(moved, (30, 1)))
    rig.until(State.RAMPING_IN)
    rig.settle(5)
    path = rig.path_of(rig.commands.messages[begin:])
    set_off = path[np.abs(path - rig.robot.home).max(axis=1) > 0][0]
    step_limit = rig.robot.jerk * rig.period_s**3
    arm = ~rig.robot.is_gripper  # grippers squeeze: what they hold keeps them from where they go
    assert (np.abs(set_off - moved)[arm] <= step_limit[arm] + 1e-9).all()


def test_a_dry_run_does_everything_but_command(graph, robot_file, tools, kit):
    path = robot_file()
    process = graph.start("action_player", robot=path, dry_run=True, remap={"__ns": "/dry"})
    rig = kit.Rig(graph, process, path, tools.eventually, prefix="/dry/")
    try:
        rig.configure()
        rig.activate()
        rig.make_source().send(line(rig))
        rig.moving()
        status = rig.until(State.STALE)
        assert status.dry_run
        assert status.chunks_played == 1 and status.commands > 20
        assert len(rig.commands) == 0
    finally:
        rig.close()
