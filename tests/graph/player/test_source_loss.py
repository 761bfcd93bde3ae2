# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the player depends on dies while the arm moves: it brakes, holds, says why, and recovers."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from rclpy.qos import qos_profile_sensor_data  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from omni_ros.player.reasons import Reason, State  # noqa: E402

LONG = {"observation_timeout_s": 60.0}


def line(rig, speed: float = 0.1) -> dict:
    """A chunk of 30 s in which all joints move steadily for 8 s."""
    times = np.minimum(0.1 * np.arange(1, 301), 8.0)
    return {"rows": rig.robot.home + speed * times[:, None], "dt_s": 0.1, "life_s": 60.0}


def kill(popen: subprocess.Popen) -> tuple[int, int]:
    """SIGKILL; return the instants (ns) before it, and by which the process had ended."""
    asked_ns = time.time_ns()
    popen.kill()
    os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT)
    return asked_ns, time.time_ns()


def stale_since(rig, moment_ns: int) -> int:
    """Instant (ns) at which the first STALE status after a moment was sent."""
    def sent():
        return [at for at, m in list(rig.statuses) if at > moment_ns and m.state == State.STALE]

    return rig.eventually(sent, "a STALE status")[0]


@pytest.fixture
def scripted(module_graph, robot_path):
    """Start the scripted policy as a process of its own; the test may kill it."""
    started = []

    def start(**parameters):
        started.append(module_graph.start(
            "scripted_policy", robot=str(robot_path), path="wave", **parameters))
        module_graph.bring_up("scripted_policy")
        return started[-1]

    yield start
    for process in started:
        if process.popen.poll() is None:
            process.end()


@pytest.fixture
def child():
    """A process that lends its id to a source, to be killed."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()
    process.stdin.close()


# -- the process of the source -------------------------------------------------------------------


@pytest.mark.parametrize("output", ["forward_velocity", "forward_position", "joint_trajectory"])
def test_when_the_process_of_the_source_is_killed_the_arm_brakes_within_two_periods(
        player, scripted, output):
    """Counted in commands, of which there is one a period, so that a busy machine cannot hurt."""
    rig = player(output=output)
    policy = scripted()
    rig.moving(0.1)
    rig.settle(40)
    begin = rig.commands.messages[0]
    asked_ns, ended_ns = kill(policy.popen)
    noticed_ns = stale_since(rig, asked_ns)
    late = [at for at, _ in list(rig.commands) if ended_ns < at < noticed_ns]
    assert len(late) <= 2  # the last of them brakes already: a status follows its tick's command
    status = rig.until(State.STALE)
    assert Reason.HEARTBEAT_LOST in status.reasons
    assert "process ended" in status.text
    rig.at_rest()
    after = [m for at, m in list(rig.commands) if at > noticed_ns]
    count = len(rig.commands)
    rig.settle(10)
    end = rig.path_of(rig.commands.messages[count:])
    np.testing.assert_array_equal(end, np.tile(end[0], (len(end), 1)))
    if output == "forward_velocity":
        assert not end.any()
        braking = rig.path_of(after)
        moving = int(np.count_nonzero(np.abs(braking).max(axis=1) > 0))
        speed = np.abs(braking[0]) + rig.robot.acceleration * rig.period_s
        ramps_s = 2 * rig.robot.acceleration / rig.robot.jerk
        stop_s = (speed / rig.robot.acceleration + ramps_s).max()
        assert moving <= math.ceil(stop_s / rig.period_s) + 1
    rig.assert_within_limits(start=rig.first(begin))


def test_a_source_that_comes_back_as_another_process_is_followed_anew(player, scripted):
    rig = player()
    policy = scripted()
    rig.moving(0.1)
    policy.kill()
    rig.until(State.STALE)
    rig.at_rest()
    scripted()  # its chunk ids begin at 1 again
    rig.moving(0.05)
    assert rig.status.source == "scripted"
    rig.assert_within_limits(start=rig.robot.home)


def test_a_chunk_in_the_name_of_a_dead_process_is_refused_although_beats_still_arrive(
        player, child):
    rig = player(**LONG)
    source = rig.make_source(pid=child.pid)
    source.send(**line(rig))
    rig.moving(0.05)
    kill(child)
    rig.until(State.STALE)
    rig.at_rest()
    stood = rig.first(rig.commands.last)
    rig.settle(5)
    source.send(**line(rig), age_s=0.0)
    rig.eventually(lambda: rig.status.refused[Reason.HEARTBEAT_LOST] == 1, "a refusal")
    assert "its process ended" in rig.status.last_refusal
    np.testing.assert_array_equal(rig.first(rig.commands.last), stood)


def test_another_source_may_take_over_once_the_first_is_dead(player, child):
    rig = player(**LONG)
    rig.make_source("first", pid=child.pid).send(**line(rig))
    rig.moving(0.05)
    second = rig.make_source("second")
    kill(child)
    rig.until(State.STALE)
    second.send(**line(rig), age_s=0.0)
    rig.moving(0.05)
    assert rig.status.source == "second"
    rig.assert_within_limits(start=rig.robot.home)


def test_the_death_of_a_process_that_is_not_followed_changes_nothing(player, child):
    rig = player(**LONG)
    rig.make_source("other", pid=child.pid)
    rig.make_source().send(**line(rig))
    rig.moving(0.05)
    kill(child)
    rig.settle(20)
    assert rig.status.stops == 0
    assert rig.status.state in (State.RAMPING_IN, State.PLAYING)


def test_a_source_of_another_machine_that_stops_beating_is_lost_after_the_timeout(player):
    rig = player(**LONG)
    source = rig.make_source(pid=1, scope="another machine")
    source.send(**line(rig))
    rig.moving(0.05)
    source.close()
    status = rig.until(State.STALE)
    assert Reason.HEARTBEAT_LOST in status.reasons
    assert "limit 1.5 s" in status.text
    rig.at_rest()
    rig.assert_within_limits(start=rig.robot.home)


def test_a_source_that_died_while_nothing_was_played_leaves_the_hold_as_it_is(player, child):
    rig = player()
    rig.make_source(pid=child.pid)
    kill(child)
    rig.settle(10)
    assert rig.status.state == State.HOLDING
    path = rig.path_of(rig.commands.messages)
    np.testing.assert_array_equal(path, np.tile(rig.robot.home, (len(path), 1)))


# -- the arm -------------------------------------------------------------------------------------


def test_when_joint_states_stop_the_arm_brakes_and_says_so(player):
    rig = player(**LONG)
    rig.make_source().send(**line(rig))
    rig.moving(0.05)
    rig.arm.silent = True
    status = rig.until(State.STALE)
    assert Reason.JOINT_STATE_STALE in status.reasons
    assert "joint states" in status.text and "limit 1 s" in status.text
    rig.at_rest()
    rig.assert_within_limits(start=rig.robot.home)


def test_when_joint_states_come_back_only_a_fresh_chunk_moves_the_arm(player):
    rig = player(**LONG)
    source = rig.make_source()
    source.send(**line(rig))
    rig.moving(0.05)
    rig.arm.silent = True
    rig.until(State.STALE)
    rig.at_rest()
    rig.arm.silent = False
    rig.eventually(lambda: rig.statuses.last.joint_state_age < 0.1, "joint states")
    rig.settle(20)
    assert not np.any(rig.status.command_velocity)
    source.send(**line(rig), age_s=0.0)
    rig.moving(0.05)
    rig.assert_within_limits(start=rig.robot.home)


def test_an_arm_that_comes_back_elsewhere_is_not_pulled_to_where_it_was(player):
    rig = player(**LONG)
    rig.make_source().send(**line(rig))
    rig.moving(0.05)
    rig.arm.silent = True
    rig.until(State.STALE)
    rig.at_rest()
    rig.settle(5)
    rig.arm.follows = False
    elsewhere = rig.robot.home - 0.3
    rig.arm.position = elsewhere
    begin = len(rig.commands)
    rig.arm.silent = False
    rig.eventually(lambda: len(rig.commands) > begin + 10, "commands")
    arm = ~rig.robot.is_gripper
    path = rig.path_of(rig.commands.messages[begin:])
    np.testing.assert_allclose(path[:, arm], np.tile(elsewhere[arm], (len(path), 1)), atol=1e-9)


def test_when_the_world_is_killed_the_player_lives_brakes_and_waits_for_it(
        player, module_graph, tools):
    world = module_graph.start("world", image_rate=0.0)
    states = module_graph.record(JointState, "joint_states", qos_profile_sensor_data)
    module_graph.bring_up("world")
    tools.eventually(lambda: states, "joint states")
    rig = player(world=True, **LONG)
    source = rig.make_source()
    source.send(**line(rig, 0.3))
    begin = rig.commands.messages[0]
    rig.eventually(
        lambda: (rig.first(rig.commands.last) - rig.first(begin)).min() > 0.4, "a long way")
    world.kill()
    assert Reason.JOINT_STATE_STALE in rig.until(State.STALE).reasons
    rig.at_rest()
    rig.assert_within_limits(start=rig.first(begin))
    assert rig.process.popen.poll() is None

    world = module_graph.start("world", image_rate=0.0)
    count = len(states)
    module_graph.bring_up("world")
    tools.eventually(lambda: len(states) > count + 50, "joint states of the new world")
    back = np.array([m.position for m in states.messages[count:]])
    # What is smaller than the resume tolerance counts as sag, not as having been moved.
    arm = ~rig.robot.is_gripper
    tolerance = rig.robot.player.resume_tolerance * (rig.robot.upper - rig.robot.lower)
    assert (np.abs(back - back[0]).max(axis=0) < tolerance)[arm].all(), "moved without a chunk"
    source.send(**line(rig, 0.3), age_s=0.0)
    rig.moving(0.05)
    world.end()
