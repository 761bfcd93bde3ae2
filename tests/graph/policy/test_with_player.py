# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""World, policy and player: what the arm does when the policy sees nothing, or hears nonsense."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from omni_ros.msg import PlayerStatus
from omni_ros.nodes._support import LATCHED_QOS, load_robot_parameter, to_ns

ROBOT = load_robot_parameter("tabletop")
COMMAND = "joint_trajectory_controller/joint_trajectory"


@pytest.fixture(scope="module")
def shared(tools, policy_tools, policy_robot, bundle, ros_domain, tmp_path_factory):
    """The world moves the arm, the test is its cameras."""
    graph = tools.Graph(tmp_path_factory.mktemp("with_player"))
    try:
        robot = policy_robot(player={"switching": "latest"}, guidance="rtc")
        graph.start("world", cameras=["front"], image_rate=0.0)
        graph.start("action_player", robot=robot)
        graph.bring_up("world")
        policy = policy_tools.Policy(graph, tools, "separate", robot=robot, bundle=str(bundle),
                                     instruction=policy_tools.sentence)
        policy.player = graph.record(PlayerStatus, "action_player/status", LATCHED_QOS)
        policy.commands = graph.record(JointTrajectory, COMMAND, 100)
        policy.positions = graph.record(JointState, "joint_states", 100)
        policy.senses = policy_tools.Senses(graph)
        policy.senses.joints = lambda *_: None  # the world sends them
        graph.bring_up("action_player")
        policy.senses.start()
        yield policy
        policy.senses.stop()
    finally:
        graph.close()


@pytest.fixture
def policy(shared, policy_tools):
    """The arm follows the policy, whatever the last test did."""
    shared.senses.usual()
    shared.say(policy_tools.sentence)
    until_playing(shared)
    return shared


def until_playing(policy) -> None:
    moment = time.monotonic()
    policy.eventually(lambda: any(
        m.state == PlayerStatus.STATE_PLAYING for _, m in policy.player.since(moment + 0.2)),
        f"playing\n{policy.graph.logs()}")


def stopped(policy, moment: float) -> PlayerStatus:
    """Wait until the player says that it is stale, and commands rest."""
    stale = policy.eventually(lambda: next(
        (m for _, m in policy.player.since(moment) if m.state == PlayerStatus.STATE_STALE), None),
        f"STALE\n{policy.graph.logs()}")
    policy.eventually(lambda: not any(policy.commands.last.points[0].velocities), "rest")
    return stale


@pytest.mark.parametrize("blind", ["covered", "gone"])
def test_a_camera_that_shows_nothing_stops_the_arm_within_the_watchdogs_time(policy, blind):
    moment, moment_ns = time.monotonic(), time.time_ns()
    getattr(policy.senses, blind).add("wrist")
    stale = stopped(policy, moment)
    # What was seen before may be played until then, by the player's own clock; and a busy moment.
    limit_s = ROBOT.player.observation_timeout_s + 1.0
    assert to_ns(stale.header.stamp) - moment_ns < limit_s * 1e9
    assert set(stale.reasons) & {PlayerStatus.REASON_STARVED, PlayerStatus.REASON_CHUNK_STALE,
                                 PlayerStatus.REASON_OBSERVATION_STALE}, stale.text


def test_it_goes_on_by_itself_when_the_camera_sees_again(policy):
    policy.senses.covered.add("front")
    stopped(policy, time.monotonic())
    policy.senses.covered.clear()
    until_playing(policy)


@pytest.mark.parametrize("stage", ["vision_encoder", "fusion_backbone", "action_head"])
def test_a_stage_that_is_deactivated_stops_the_arm(policy, stage):
    moment = time.monotonic()
    assert policy.graph.change_state(stage, "deactivate")
    stopped(policy, moment)
    assert policy.graph.change_state(stage, "activate")
    until_playing(policy)


def test_an_empty_instruction_stops_the_arm(policy):
    moment = time.monotonic()
    policy.say("")
    stopped(policy, moment)


def test_a_sentence_that_nobody_taught_moves_the_arm_within_its_limits(policy):
    moment = time.monotonic()
    for sentence in ("colourless green ideas", "7" * 3000, "\N{PILE OF POO}"):
        policy.say(sentence)
        policy.next_chunks(2)
    positions = np.array([m.points[0].positions for _, m in policy.commands.since(moment)])
    velocities = np.array([m.points[0].velocities for _, m in policy.commands.since(moment)])
    assert len(positions) > 10
    assert (positions >= ROBOT.lower + ROBOT.margin - 1e-6).all()
    assert (positions <= ROBOT.upper - ROBOT.margin + 1e-6).all()
    assert (np.abs(velocities) <= ROBOT.velocity + 1e-6).all()
    assert policy.player.last.state != PlayerStatus.STATE_TRIPPED


def test_a_change_of_the_sentence_mid_motion_changes_the_plan_without_a_stop(policy, policy_tools):
    moment = time.monotonic()
    policy.say("pick up the green block")
    policy.until("action_head", lambda s: "green" in s.text, "chunks of the new sentence")
    policy.next_chunks(2)
    states = {m.state for _, m in policy.player.since(moment)}
    assert not states & {PlayerStatus.STATE_TRIPPED, PlayerStatus.STATE_STALE,
                         PlayerStatus.STATE_HOLDING}
    assert policy.player.last.chunk_id >= policy.chunks.last.chunk_id - 1
