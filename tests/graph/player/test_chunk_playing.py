# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Playing chunks by the clock over DDS: anchors, slow sources, late rows, the end of rows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")

from omni_ros.msg import ActionChunk  # noqa: E402
from omni_ros.player.reasons import Reason, State  # noqa: E402

LONG = {"observation_timeout_s": 60.0}
MOVING = {State.RAMPING_IN, State.PLAYING}


def seconds(stamp) -> float:
    return stamp.sec + stamp.nanosec * 1e-9


def test_offsets_stay_fixed_to_the_pose_of_the_observation_while_the_arm_moves(player):
    rig = player(**LONG)
    anchor = rig.robot.home + 0.1  # the arm has been, and is, elsewhere
    rig.make_source().send(
        np.full((300, 6), 0.01), dt_s=0.02, life_s=60.0, anchor=anchor.tolist(),
        mode=ActionChunk.CONTROL_POSITION_OFFSET)
    goal = anchor + 0.01
    rig.eventually(lambda: np.allclose(rig.first(rig.commands.last), goal, atol=1e-4), "the goal")
    reached = len(rig.commands)
    rig.settle(50)
    path = rig.path_of(rig.commands.messages[reached:])
    np.testing.assert_allclose(path, np.tile(goal, (len(path), 1)), atol=2e-4)


def test_slow_back_to_back_inference_leaves_no_tick_without_a_command(
        player, module_graph, robot_path):
    """A third of a minute, for a third of the chunks of a minute; benches run for longer."""
    rig = player(observation_timeout_s=10.0)
    source = module_graph.start("scripted_policy", robot=str(robot_path), path="wave", latency=0.35,
                                rate=100.0, rows=50, dt=1 / 30, life=10.0)
    module_graph.bring_up("scripted_policy")
    rig.moving(0.02)
    begin = rig.status
    rig.eventually(lambda: rig.statuses.last.ticks + rig.statuses.last.ticks_missed
                   >= begin.ticks + begin.ticks_missed + 20 / rig.period_s, "20 s", 60.0)
    end = rig.statuses.last
    source.end()
    during = [m for m in rig.statuses.messages if begin.sequence <= m.sequence <= end.sequence]
    assert {m.state for m in during} <= MOVING and end.stops == 0
    # Not measured by the watch: each tick commanded, and the ticks (with those that this machine
    # was too busy for) are all that the time had room for: no gap comes from waiting for a chunk.
    assert end.commands - begin.commands == end.ticks - begin.ticks
    room = (seconds(end.header.stamp) - seconds(begin.header.stamp)) / rig.period_s
    ticked = end.ticks + end.ticks_missed - begin.ticks - begin.ticks_missed
    assert ticked == pytest.approx(room, abs=5 + 0.01 * room)
    assert len({m.chunk_id for m in during}) >= 20
    rig.assert_within_limits(start=rig.robot.home)


def test_rows_that_are_past_when_a_later_chunk_comes_are_dropped_and_counted(player):
    rig = player()
    source = rig.make_source()
    rows = rig.robot.home + 0.01 * np.arange(1, 51)[:, None]
    source.send(rows, age_s=0.4)
    rig.until(State.RAMPING_IN)
    assert rig.statuses.last.rows_dropped_late == 0
    source.send(rows, age_s=0.35)
    rig.eventually(lambda: rig.statuses.last.chunks_played == 2, "the second chunk")
    # Ten were past when it was sent; more only if it took long to arrive.
    assert 10 <= rig.statuses.last.rows_dropped_late <= 40


def test_when_rows_run_out_the_arm_brakes_and_then_repeats_one_command(player):
    rig = player()
    rig.make_source().send(rig.robot.home + 0.02 * np.arange(1, 31)[:, None])
    status = rig.until(State.STALE)
    assert Reason.STARVED in status.reasons
    rig.at_rest()
    count = len(rig.commands)
    rig.settle(10)
    path = rig.path_of(rig.commands.messages[count:])
    np.testing.assert_array_equal(path, np.tile(path[0], (len(path), 1)))
    rig.assert_within_limits(start=rig.robot.home)
    assert rig.status.stops == 1


def test_a_chunk_is_not_played_beyond_its_life(player):
    rig = player()
    rig.make_source().send(
        rig.robot.home + 0.005 * np.arange(1, 201)[:, None], life_s=1.0, age_s=0.0)
    rig.moving(0.02)
    assert Reason.CHUNK_STALE in rig.until(State.STALE).reasons
    rig.at_rest()
    assert rig.first(rig.commands.last)[0] < 0.5  # its last row is at 1.0
    rig.assert_within_limits(start=rig.robot.home)


def test_an_observation_that_outgrows_its_timeout_stops_the_arm(player):
    rig = player(observation_timeout_s=1.0)
    rig.make_source().send(
        rig.robot.home + 0.005 * np.arange(1, 201)[:, None], life_s=30.0, age_s=0.0)
    rig.moving(0.02)
    assert Reason.OBSERVATION_STALE in rig.until(State.STALE).reasons
    rig.at_rest()


def test_a_stopped_arm_moves_again_by_itself_with_a_fresh_chunk(player):
    rig = player()
    source = rig.make_source()
    source.send(rig.robot.home + 0.02 * np.arange(1, 13)[:, None])
    rig.until(State.STALE)
    source.send(np.tile(rig.robot.home, (50, 1)), age_s=0.0)
    rig.eventually(lambda: np.allclose(rig.first(rig.commands.last), rig.robot.home, atol=1e-3),
                   "the arm back at home")
    rig.assert_within_limits(start=rig.robot.home)


@pytest.mark.parametrize("switching", ["latest", "blend", "ensemble"])
def test_contradicting_chunks_never_leave_the_limits(player, switching):
    rig = player(switching=switching)
    source = rig.make_source()
    for number in range(12):
        away = 0.8 * (-1) ** number * np.ones((40, 6))
        source.send(rig.robot.home + away, age_s=0.0)
        rig.settle(6)
    assert rig.status.chunks_played == 12
    rig.assert_within_limits(start=rig.robot.home)


@pytest.mark.parametrize("output", ["forward_position", "joint_trajectory"])
def test_both_position_outputs_stay_within_the_limits(player, output):
    rig = player(output=output)
    goal = rig.robot.home + 0.6
    rig.make_source().send(np.tile(goal, (50, 1)))
    rig.until(State.STALE)
    rig.at_rest()
    rig.assert_within_limits(start=rig.robot.home)
    np.testing.assert_allclose(rig.first(rig.commands.last), goal, atol=0.01)
