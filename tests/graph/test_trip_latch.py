# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A trip outlives the player's process, however it ended, until it is reset."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from std_srvs.srv import Trigger  # noqa: E402

from omni_ros.msg import PlayerStatus  # noqa: E402
from omni_ros.nodes._support import LATCHED_QOS  # noqa: E402
from omni_ros.player.reasons import Reason, State  # noqa: E402


def kept(folder) -> set[str]:
    """What the files of trips say."""
    return {file.read_text().strip() for file in folder.glob("trip-*")}


def tripped_player(graph, robot_file, tools):
    """A player that was tripped by service: its robot, its process, its statuses."""
    path = robot_file()
    process = graph.start("action_player", robot=path)
    graph.bring_up("action_player")
    assert graph.call(Trigger, "action_player/protective_stop").success
    statuses = graph.record(PlayerStatus, "action_player/status", LATCHED_QOS)
    tools.eventually(
        lambda: statuses.last and statuses.last.trip_reason == Reason.PROTECTIVE_STOP, "a trip")
    return path, process, statuses


def test_a_trip_outlives_a_killed_player(graph, robot_file, tools, runtime_folder):
    path, process, statuses = tripped_player(graph, robot_file, tools)
    tools.eventually(lambda: kept(runtime_folder) != {"NONE"}, "the trip's file")
    process.kill()
    statuses.clear()
    graph.start("action_player", robot=path)
    graph.bring_up("action_player")
    tools.eventually(lambda: statuses.last is not None, "a status of the new process")
    assert statuses.last.trip_reason == Reason.PROTECTIVE_STOP


def test_a_trip_outlives_an_orderly_restart(graph, robot_file, tools):
    path, process, statuses = tripped_player(graph, robot_file, tools)
    assert process.end() == 0
    statuses.clear()
    graph.start("action_player", robot=path)
    graph.bring_up("action_player")
    tools.eventually(
        lambda: any(m.state != State.INACTIVE for m in statuses.messages), "an active player")
    assert statuses.last.trip_reason == Reason.PROTECTIVE_STOP


def test_after_a_reset_a_restarted_player_is_not_tripped(graph, robot_file, tools, runtime_folder):
    path, process, statuses = tripped_player(graph, robot_file, tools)
    tools.eventually(
        lambda: graph.call(Trigger, "action_player/reset").success, "a reset that is granted")
    tools.eventually(lambda: kept(runtime_folder) == {"NONE"}, "the file without a trip")
    process.kill()
    statuses.clear()
    graph.start("action_player", robot=path)
    graph.bring_up("action_player")
    tools.eventually(lambda: statuses.last is not None, "a status of the new process")
    assert statuses.last.trip_reason == Reason.NONE


