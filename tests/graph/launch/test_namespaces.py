# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Two launches in namespaces of their own: two robots in one graph."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from std_srvs.srv import Trigger  # noqa: E402

from omni_ros.msg import PlayerStatus  # noqa: E402

#: ROS itself keeps these outside of every namespace.
GLOBAL_TOPICS = {"/rosout", "/parameter_events", "/diagnostics", "/clock"}


@pytest.fixture(scope="module")
def pair(tools, launch, ros_domain, tmp_path_factory):
    """Two robots in namespaces of their own."""
    graph = tools.Graph(tmp_path_factory.mktemp("pair"))
    try:
        left, right = (launch(graph, namespace=name) for name in ("left", "right"))
        yield SimpleNamespace(left=left.until_moving(), right=right.until_moving(), graph=graph)
    finally:
        graph.close()


def test_a_namespace_holds_every_topic_and_service(pair):
    node = pair.graph.node
    names = {name for name, _ in node.get_topic_names_and_types()}
    names |= {name for name, _ in node.get_service_names_and_types()}
    strays = {name for name in names - GLOBAL_TOPICS
              if not name.startswith(("/left/", "/right/", "/test_observer/"))
              and not name.startswith(("/launch_ros", "/_ros2cli"))}
    assert not strays


def test_two_robots_move_at_once(pair):
    for robot in (pair.left, pair.right):
        start = robot.position()
        robot.eventually(lambda: np.abs(robot.position() - start).max() > 0.02, "motion")


def test_a_stop_of_one_robot_leaves_the_other_moving(pair):
    stops = pair.right.statuses.last.stops
    assert pair.graph.call(Trigger, "/left/action_player/protective_stop").success
    pair.left.eventually(lambda: pair.left.state == PlayerStatus.STATE_TRIPPED, "the stop")
    assert pair.right.statuses.last.stops == stops
    pair.right.until_moving()
