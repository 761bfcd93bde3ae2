# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Subscriptions that are read by the tick, not by the executor.

An executor wakes for every message and holds the interpreter while it does: 500 joint states a second
cost more than the tick itself, and any of them may delay it. Only the newest matters, so the tick takes
what has come when it looks, and nothing wakes in between.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator

from rclpy.callback_groups import CallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile
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
    """A subscription whose messages are fetched by whoever owns it, on that thread.

    :param on_incompatible: called by the executor with (topic, last policy kind) when a publisher's
        quality of service cannot match.
    """

    def __init__(self, node: Node, message_type: Any, topic: str, qos: QoSProfile,
                 on_incompatible: Callable[[str, Any], None] | None = None) -> None:
        self._group = NeverExecuted()
        callbacks = SubscriptionEventCallbacks(
            incompatible_qos=(
                None if on_incompatible is None
                else lambda info: on_incompatible(topic, info.last_policy_kind)))
        self._subscription = node.create_subscription(
            message_type, topic, _unused, qos, callback_group=self._group,
            event_callbacks=callbacks,
            qos_overriding_options=QoSOverridingOptions.with_default_policies())
        # Events are rare and must be heard: hand them back to the executor.
        for handler in self._subscription.event_handlers:
            handler.callback_group = node.default_callback_group
            node.default_callback_group.add_entity(handler)
        self._node = node

    def take(self, most: int = 8) -> Iterator[Any]:
        """Yield the messages that have come since the last look, oldest first, at most `most`."""
        handle = self._subscription.handle
        with handle:
            for _ in range(most):
                taken = handle.take_message(self._subscription.msg_type, False)
                if taken is None:
                    return
                yield taken[0]

    def destroy(self) -> None:
        self._node.destroy_subscription(self._subscription)


def _unused(message: Any) -> None:
    raise AssertionError("a polled subscription was served by an executor")
