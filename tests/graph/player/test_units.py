# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Units of the policy on one side and of the topics on the other, over DDS."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy")

from omni_ros.msg import ActionChunk  # noqa: E402
from omni_ros.player.reasons import Reason  # noqa: E402

LONG = {"observation_timeout_s": 60.0}


def wide_pan(content: dict) -> None:
    content["joints"][0]["position"] = [-3.0, 3.0]


def percent_gripper(content: dict) -> None:
    content["joints"][5].update(
        policy_unit="normalised", normalised={"policy": [0.0, 100.0], "joint": [0.0, 1.5]})


def test_degrees_of_the_policy_are_radians_on_the_command_topic(player):
    rig = player(joints={"policy_unit": "deg"}, edit=wide_pan, **LONG)
    rows = np.tile(rig.robot.to_policy(rig.robot.home), (300, 1))
    rows[:, 0] = 90.0
    rig.make_source().send(rows, life_s=60.0)
    rig.eventually(lambda: rig.first(rig.commands.last)[0] > 1.57, "the goal")
    rig.settle(50)
    np.testing.assert_allclose(rig.first(rig.commands.last)[0], math.pi / 2, atol=1e-4)


def test_a_normalised_gripper_is_mapped_between_its_two_poses(player):
    rig = player(edit=percent_gripper, **LONG)
    rows = np.tile(rig.robot.home, (300, 1))
    rows[:, 5] = 50.0
    rig.make_source().send(rows, life_s=60.0)
    rig.eventually(
        lambda: np.isclose(rig.first(rig.commands.last)[5], 0.75, atol=1e-4), "the gripper")


def test_velocities_in_degrees_are_radians_a_second_on_the_command_topic(player):
    rig = player(joints={"policy_unit": "deg"}, output="forward_velocity", **LONG)
    rig.make_source().send(
        np.tile([9.0, 0, 0, 0, 0, 0], (300, 1)), life_s=60.0, mode=ActionChunk.CONTROL_VELOCITY)
    rig.eventually(
        lambda: np.isclose(rig.first(rig.commands.last)[0], 0.05 * math.pi, atol=1e-4), "speed")


def test_offsets_in_degrees_are_added_to_an_anchor_in_degrees(player):
    rig = player(joints={"policy_unit": "deg"}, **LONG)
    rig.make_source().send(
        np.full((300, 6), 9.0), life_s=60.0, mode=ActionChunk.CONTROL_POSITION_OFFSET,
        anchor=rig.robot.to_policy(rig.robot.home).tolist())
    goal = rig.robot.home + 0.05 * math.pi
    rig.eventually(lambda: np.allclose(rig.first(rig.commands.last), goal, atol=1e-3), "the goal")


def test_a_chunk_in_radians_is_refused_by_a_robot_whose_policy_speaks_degrees(player):
    rig = player(joints={"policy_unit": "deg"})
    rig.make_source().send(np.tile(rig.robot.home, (30, 1)), joint_units=["rad"] * 6)
    rig.eventually(lambda: rig.status.refused[Reason.BAD_UNITS] == 1, "a refusal")
    assert "'rad'" in rig.status.last_refusal and "'deg'" in rig.status.last_refusal


def test_a_policy_sees_the_measured_radians_in_degrees(graph, robot_file, tools, kit):
    path = robot_file(joints={"policy_unit": "deg"}, edit=wide_pan)
    process = graph.start("scripted_policy", robot=path, path="wave", rows=1, dt=0.001, latency=0.0)
    chunks = kit.Wire(graph, ActionChunk, "action_chunk")
    graph.bring_up("scripted_policy")
    rig = kit.Rig(graph, process, path, tools.eventually)
    rig.joint_states = graph.publisher(kit.JointState, "joint_states")
    pose = rig.robot.home.copy()
    pose[0] = math.pi / 2
    rig.make_arm(position=pose)
    try:
        first = tools.eventually(lambda: chunks and chunks[0][1], "a chunk")
    finally:
        rig.close()
    # Its first row is a millisecond from where the arm was measured.
    np.testing.assert_allclose(first.values[0], 90.0, atol=0.01)
    assert list(first.joint_units) == ["deg"] * 6


def of_pan(**fields):
    return lambda content: content["joints"][0].update(fields)


WRONG = {
    "an unknown unit": (of_pan(policy_unit="degree"), ["shoulder_pan", "'degree'", "deg"]),
    "limits in degrees": (of_pan(position=[-110.0, 110.0]), ["shoulder_pan", "degrees", "110"]),
    "degrees of a slide": (
        of_pan(kind="prismatic", policy_unit="deg"),
        ["shoulder_pan", "'deg', but the joint moves in 'm'"]),
    "degrees on the topic": (of_pan(unit="deg"), ["shoulder_pan", "deg", "rad"]),
    "a range left out": (of_pan(policy_unit="normalised"), ["shoulder_pan", "normalised"]),
    "a range of no width": (
        of_pan(policy_unit="normalised", normalised={"policy": [1, 1], "joint": [0, 1]}),
        ["shoulder_pan", "normalised"]),
    "limits the wrong way round": (of_pan(position=[1.0, -1.0]), ["shoulder_pan", "-1"]),
    "no speed": (of_pan(velocity=0.0), ["shoulder_pan", "velocity", "0"]),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_robot_file_with_wrong_units_fails_configure_in_words_and_the_node_lives(
        module_graph, player_process, write_robot, kind):
    edit, words = WRONG[kind]
    write_robot(edit=edit)
    before = len(player_process.output)
    assert not module_graph.change_state("action_player", "configure")
    said = player_process.output[before:]
    assert "on_configure failed" in said and "Traceback" not in said
    assert all(word in said for word in words), said
    assert module_graph.state("action_player") == "unconfigured"


def test_after_the_robot_file_is_put_right_configure_succeeds(player, write_robot, module_graph,
                                                              player_process):
    write_robot(edit=of_pan(policy_unit="degree"))
    assert not module_graph.change_state("action_player", "configure")
    player().settle(3)
