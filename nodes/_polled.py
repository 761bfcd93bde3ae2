# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Subscriptions that are read by the tick, not by the executor.

An executor wakes for every message and holds the interpreter while it does: 500 joint states a
second cost more than the tick itself, and any of them may delay it. Nothing needs them before the
next tick, so it takes what has come when it looks, and nothing wakes in between. Events of such a
subscription are left out too: with unread messages behind them they would keep an executor
spinning.
"""

from __future__ import annotations

from typing import Any, Iterator, Sequence

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import CallbackGroup
try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, QoSProfile, qos_check_compatible
from rclpy.qos_overriding_options import QoSOverridingOptions


class NeverExecuted(CallbackGroup):
    """A callback group that no executor ever serves."""

    def can_execute(self, entity) -> bool:
        return False

    def beginning_execution(self, entity) -> bool:
        return False

    def ending_execution(self, entity) -> None:
        pass


class PolledSubscription:
    """A subscription whose messages are fetched by whoever owns it, on that thread."""

    def __init__(self, node: Node, message_type: Any, topic: str, qos: QoSProfile,
                 overridable: QoSOverridingOptions | None = None) -> None:
        """:param overridable: by parameters; history, depth and reliability if None."""
        self._subscription = node.create_subscription(
            message_type, topic, _unused, qos, callback_group=NeverExecuted(),
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            qos_overriding_options=overridable or QoSOverridingOptions.with_default_policies())
        self._node = node

    def take(self, most: int = 16) -> Iterator[Any]:
        """Yield the messages that have come since the last look, oldest first, at most `most`."""
        handle = self._subscription.handle
        with handle:
            for _ in range(most):
                taken = handle.take_message(self._subscription.msg_type, False)
                if taken is None:
                    return
                yield taken[0]

    def incompatible_publishers(self) -> list[str]:
        """Say which publishers of the topic can never reach this subscription, and why."""
        topic, qos = self._subscription.topic_name, self._subscription.qos_profile
        problems = []
        for info in self._node.get_publishers_info_by_topic(topic):
            verdict, reason = qos_check_compatible(info.qos_profile, qos)
            if verdict == QoSCompatibility.ERROR:  # an enumeration whose members are made anew
                problems.append(f"{topic} from {info.node_name}: {reason.strip()}")
        return problems

    def destroy(self) -> None:
        self._node.destroy_subscription(self._subscription)


class Connections:
    """Reports publishers that some polled subscriptions can never hear; a diagnostics task."""

    def __init__(self, node: Node) -> None:
        #: Those to look at; the owner sets them.
        self.subscriptions: Sequence[PolledSubscription] = ()
        self._node = node
        self._known: set[str] = set()

    def report(self, out: Any) -> Any:
        """Fill a diagnostics status; log each publisher once, when it is found."""
        found = {text for subscription in self.subscriptions
                 for text in subscription.incompatible_publishers()}
        for text in found - self._known:
            self._node.get_logger().error(
                f"no messages can come on {text}; change the publisher, or this node's "
                "qos_overrides parameters")
        self._known = found
        if found:
            out.summary(DiagnosticStatus.ERROR, "; ".join(sorted(found)))
        else:
            out.summary(DiagnosticStatus.OK, "no incompatible publisher")
        return out


def _unused(message: Any) -> None:
    raise AssertionError("a polled subscription was served by an executor")
