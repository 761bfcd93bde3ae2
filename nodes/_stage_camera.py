# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A camera's topic, heard whatever its quality of service, and reliably wherever that can be had.

A best-effort subscription hears any publisher. But a picture travels in fragments, and is lost with
any one of them: on a busy machine nine of ten pictures of 640x480 were, where a reliable
subscription had all. So it is reliable until a camera is seen that is not.
"""

from __future__ import annotations

from typing import Any, Iterator

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

from omni_ros.nodes._stage_wait import TimedSubscription
from omni_ros.nodes._support import SENSOR_QOS

#: Pictures kept: the newest may be without its match from another camera.
DEPTH = 2
#: Seconds between two looks at who publishes.
LOOK_S = 0.5


class CameraInput:
    """The pictures of one camera. `current` and `take_timed` are for one thread."""

    def __init__(self, node: Node, kind: Any, topic: str) -> None:
        self._node, self._kind, self._topic = node, kind, topic
        self._reliable = TimedSubscription(node, kind, topic, _qos(ReliabilityPolicy.RELIABLE))
        self._any: TimedSubscription | None = None
        self._any_wanted = False
        name = node.resolve_topic_name(topic)
        # What a parameter says holds, whoever publishes.
        self._fixed = f"qos_overrides.{name}.subscription.reliability" in node._parameter_overrides
        self._timer = node.create_timer(
            LOOK_S, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._look()

    def _look(self) -> None:
        """On the executor's thread: is there a publisher that only best effort can hear?"""
        publishers = self._node.get_publishers_info_by_topic(
            self._node.resolve_topic_name(self._topic))
        self._any_wanted = not self._fixed and any(
            info.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT for info in publishers)

    def current(self) -> TimedSubscription:
        """Return the subscription that hears all publishers there are."""
        if not self._any_wanted:
            return self._reliable
        if self._any is None:
            self._any = TimedSubscription(
                self._node, self._kind, self._topic, _qos(ReliabilityPolicy.BEST_EFFORT),
                QoSOverridingOptions(policy_kinds=[QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH]))
        return self._any

    def take_timed(self, most: int = 16) -> Iterator[tuple[Any, int, int]]:
        """As `TimedSubscription.take_timed`."""
        return self.current().take_timed(most)

    def take(self, most: int = 16) -> Iterator[Any]:
        """As `PolledSubscription.take`."""
        return self.current().take(most)

    def incompatible_publishers(self) -> list[str]:
        """As `PolledSubscription.incompatible_publishers`."""
        chosen = self._any if self._any_wanted else self._reliable
        return [] if chosen is None else chosen.incompatible_publishers()

    def destroy(self) -> None:
        self._node.destroy_timer(self._timer)
        for subscription in (self._reliable, self._any):
            if subscription is not None:
                subscription.destroy()


def _qos(reliability: ReliabilityPolicy) -> QoSProfile:
    return QoSProfile(depth=DEPTH, history=SENSOR_QOS.history, reliability=reliability,
                      durability=SENSOR_QOS.durability)
