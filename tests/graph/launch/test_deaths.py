# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One launch through the deaths of its nodes: SIGKILL, as by the out-of-memory killer.

One launch serves all tests here: each begins once the arm moves, whatever the last one did.
"""

from __future__ import annotations

import os
import re
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from omni_ros.msg import PlayerStatus  # noqa: E402
from omni_ros.nodes._support import load_robot_parameter  # noqa: E402
from omni_ros.world.simulation import Simulation  # noqa: E402

NODES = ("world", "action_player", "scripted_policy")
ROBOT = load_robot_parameter("tabletop")
PERIOD_S = 1.0 / ROBOT.player.rate_hz


@pytest.fixture(scope="module")
def shared(tools, launch, ros_domain, tmp_path_factory):
    graph = tools.Graph(tmp_path_factory.mktemp("deaths"))
    try:
        yield launch(graph).until_moving()
    finally:
        graph.close()


@pytest.fixture
def launched(shared):
    """The arm moves, whatever the last test did."""
    return shared.until_moving()


def test_nodes_come_up_in_their_order(launched):
    launched.eventually(lambda: "scripted_policy is active" in launched.process.output, "the last")
    found = re.findall(r"(\w+) is active", launched.process.output)
    assert found[:3] == list(NODES)


def test_the_arm_moves(launched):
    start = launched.position()
    launched.eventually(lambda: np.abs(launched.position() - start).max() > 0.05, "motion")


@pytest.fixture(scope="module", params=["scripted_policy", "world"])
def killed(request, shared):
    """What the player did after a node that it depends on was killed while the arm moved."""
    shared.until_moving()
    name, old = request.param, shared.pid(request.param)
    missed = shared.statuses.last.ticks_missed
    moment = time.monotonic()
    os.kill(old, signal.SIGKILL)
    shared.eventually(lambda: PlayerStatus.STATE_STALE in shared.states_since(moment), "STALE")
    shared.eventually(lambda: shared.pid(name) != old, f"another {name}")
    shared.eventually(lambda: shared.states_since(moment)[-1] == PlayerStatus.STATE_PLAYING
                      and len(shared.states_since(moment)) > 2, "playing again")
    # From a little before the kill; a recorded command is a tick's, unless the tick was missed.
    commands = shared.commands.since(moment - 0.2)
    return SimpleNamespace(
        name=name, states=shared.states_since(moment), commands=commands,
        statuses=[status for _, status in shared.statuses.since(moment)], moment=moment,
        missed=shared.statuses.last.ticks_missed - missed)


def velocity_steps(commands: list) -> np.ndarray:
    """Changes of the commanded velocity from each message to the next, (k, n)."""
    return np.diff(np.array([m.points[0].velocities for _, m in commands]), axis=0)


def test_the_death_of_a_node_makes_the_player_brake_within_its_limits(killed):
    # A missed tick makes one step of two or more.
    allowed = ROBOT.acceleration * PERIOD_S * (1 + killed.missed) + 1e-6
    assert (np.abs(velocity_steps(killed.commands)) <= allowed).all()


def test_the_death_of_a_node_brings_the_command_to_rest(killed):
    resting = [m for at, m in killed.commands if at > killed.moment
               and not any(m.points[0].velocities)]
    assert resting


def test_the_status_says_why_the_arm_stopped(killed):
    reason = {"scripted_policy": PlayerStatus.REASON_HEARTBEAT_LOST,
              "world": PlayerStatus.REASON_JOINT_STATE_STALE}[killed.name]
    stale = next(s for s in killed.statuses if s.state == PlayerStatus.STATE_STALE)
    assert reason in stale.reasons, stale.text


def test_motion_resumes_through_the_ramp_without_being_asked(killed):
    after = killed.states[killed.states.index(PlayerStatus.STATE_STALE) + 1:]
    assert after[-2:] == [PlayerStatus.STATE_RAMPING_IN, PlayerStatus.STATE_PLAYING]
    assert PlayerStatus.STATE_TRIPPED not in after


def longest_gap(recorded: list) -> int:
    """Index of the first message after the longest time without one."""
    return max(range(1, len(recorded)), key=lambda i: recorded[i][0] - recorded[i - 1][0])


def test_an_arm_that_comes_back_in_another_pose_is_not_thrown_to_the_old_one(killed):
    if killed.name != "world":
        pytest.skip("the arm stayed where it was")
    # The player commands nothing while the arm is not measured, and then from where it is: where
    # the new world begins, not where the old one ended. What an observer hears of the new world's
    # joints may begin later than the command, so the pose is asked of the world itself.
    simulation = Simulation()
    simulation.reset(0)
    begins = simulation.joint_positions()
    resumed = killed.commands[longest_gap(killed.commands)][1]
    assert tuple(resumed.joint_names) == tuple(ROBOT.joint_names)
    # What differs by less than the tolerance counts as sag, and is held where it was.
    allowed = ROBOT.player.resume_tolerance * (ROBOT.upper - ROBOT.lower) + 0.05
    assert (np.abs(np.array(resumed.points[0].positions) - begins) <= allowed).all()


@pytest.fixture(scope="module")
def orphaned(shared):
    """Joint states after the player was killed while the arm moved, until a new one plays."""
    shared.until_moving()
    old, moment = shared.pid("action_player"), time.monotonic()
    os.kill(old, signal.SIGKILL)
    shared.eventually(lambda: shared.pid("action_player") != old, "another player")
    shared.eventually(lambda: any(
        status.state == PlayerStatus.STATE_PLAYING
        for _, status in shared.statuses.since(moment + 0.5)), "playing again")
    return np.array([np.abs(message.velocity).max() for _, message in shared.joints.since(moment)])


def test_when_the_player_dies_the_controller_ends_the_motion(orphaned):
    assert orphaned.min() < 0.05


def test_a_new_player_takes_over_without_a_leap(orphaned):
    assert orphaned.max() <= ROBOT.velocity.max()


def test_the_death_of_the_manager_disturbs_no_node(launched):
    old, moment = launched.pid("lifecycle_manager"), time.monotonic()
    nodes = [launched.pid(name) for name in NODES]
    os.kill(old, signal.SIGKILL)
    launched.eventually(lambda: launched.pid("lifecycle_manager") != old, "another manager")
    time.sleep(3.0)
    # A starved machine may make the arm stop in that time; a manager at work would deactivate it.
    assert not set(launched.states_since(moment)) & {
        PlayerStatus.STATE_INACTIVE, PlayerStatus.STATE_WAITING, PlayerStatus.STATE_TRIPPED}
    assert [launched.pid(name) for name in NODES] == nodes
    launched.until_moving()


def test_a_manager_that_came_back_brings_up_what_dies_next(launched):
    old = launched.pid("scripted_policy")
    os.kill(old, signal.SIGKILL)
    launched.eventually(lambda: launched.pid("scripted_policy") != old, "another policy")
    launched.until_moving()


def test_what_an_operator_deactivates_stays_so(launched):
    assert launched.graph.change_state("action_player", "deactivate")
    time.sleep(3.0)
    state = launched.graph.state("action_player")
    assert launched.graph.change_state("action_player", "activate")
    assert state == "inactive"
