# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The protective stop over DDS: who is heard, and what a reset needs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from std_msgs.msg import Bool  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from omni_ros.nodes._support import LATCHED_QOS  # noqa: E402
from omni_ros.player.reasons import Reason, State  # noqa: E402

BUTTONS = {
    "latched": LATCHED_QOS,
    "volatile": QoSProfile(depth=10),
    "best effort": QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT),
}


@pytest.fixture
def moving(player):
    """The arm is following a long chunk."""
    rig = player(observation_timeout_s=20.0)
    rig.source = rig.make_source()
    target = rig.robot.home + np.linspace(0.0, 0.5, 300)[:, None]
    rig.source.send(target, age_s=0.0, life_s=20.0)
    rig.moving(0.02)
    return rig


@pytest.fixture
def button(module_graph):
    """Make a publisher of the protective stop; it ends with the test."""
    made = []

    def make(qos):
        publisher = module_graph.node.create_publisher(Bool, "protective_stop", qos)
        made.append(publisher)
        return publisher

    yield make
    for publisher in made:
        module_graph.node.destroy_publisher(publisher)


def press(rig, publisher) -> None:
    rig.eventually(publisher.get_subscription_count, "a subscriber of the stop")
    publisher.publish(Bool(data=True))
    rig.until(State.TRIPPED)


def reset(rig) -> Trigger.Response:
    return rig.trigger("reset")


def reset_when_allowed(rig) -> None:
    rig.eventually(lambda: reset(rig).success, "a reset that is granted")


@pytest.mark.parametrize("kind", BUTTONS)
def test_a_stop_is_heard_from_any_kind_of_publisher(moving, button, kind):
    press(moving, button(BUTTONS[kind]))
    assert moving.statuses.last.trip_reason == Reason.PROTECTIVE_STOP


def test_a_stop_that_stands_forbids_the_reset(moving, button):
    publisher = button(LATCHED_QOS)
    press(moving, publisher)
    moving.at_rest()
    moving.settle(40)
    answer = reset(moving)
    assert not answer.success and "publish false on protective_stop" in answer.message


def test_a_stop_that_was_released_can_be_reset(moving, button):
    publisher = button(LATCHED_QOS)
    press(moving, publisher)
    publisher.publish(Bool(data=False))
    reset_when_allowed(moving)
    moving.until(State.HOLDING)


def test_a_release_alone_does_not_let_the_arm_move(moving, button):
    publisher = button(LATCHED_QOS)
    press(moving, publisher)
    publisher.publish(Bool(data=False))
    moving.at_rest()
    moving.source.send(moving.robot.home + np.full((30, 1), 0.2), age_s=0.0)
    moving.settle(20)
    assert moving.status.state == State.TRIPPED


def test_a_stop_by_service_can_be_reset_without_a_release(moving):
    assert moving.trigger("protective_stop").success
    moving.until(State.TRIPPED)
    reset_when_allowed(moving)
    moving.until(State.HOLDING)


def test_a_stop_that_stands_before_the_player_is_configured_holds_once_it_is_active(
        player, button):
    button(LATCHED_QOS).publish(Bool(data=True))
    rig = player(arm=False)
    rig.make_arm()
    assert rig.until(State.TRIPPED).trip_reason == Reason.PROTECTIVE_STOP
