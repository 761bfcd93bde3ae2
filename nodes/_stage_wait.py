# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Waiting for messages on the thread that uses them, without an executor in between.

The stages' subscriptions are polled: what nobody needs is never converted to Python. While a stage
has nothing to do it sleeps in a wait set of its own, and wakes in the moment a message comes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Iterator, Sequence

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile

from omni_ros.nodes._polled import PolledSubscription


def deeper(qos: QoSProfile, depth: int) -> QoSProfile:
    """Return the same quality of service with another depth."""
    return QoSProfile(depth=depth, history=qos.history, reliability=qos.reliability,
                      durability=qos.durability)


class TimedSubscription(PolledSubscription):
    """A polled subscription that also tells when a message came."""

    def take_timed(self, most: int = 16) -> Iterator[tuple[Any, int, int]]:
        """Yield (message, when it came by the monotonic clock, when it was sent by the sender's).

        In nanoseconds, oldest message first. What the middleware does not tell is now, and 0.
        """
        handle = self._subscription.handle
        with handle:
            for _ in range(most):
                taken = handle.take_message(self._subscription.msg_type, False)
                if taken is None:
                    return
                message, info = taken
                mono_ns, wall_ns = time.monotonic_ns(), time.time_ns()
                waited_ns = max(0, wall_ns - (info.get("received_timestamp") or wall_ns))
                yield message, mono_ns - waited_ns, int(info.get("source_timestamp") or 0)

    @property
    def handle(self):
        return self._subscription.handle


class Waiter:
    """Sleeps until one of some subscriptions has a message, or somebody calls :meth:`wake`."""

    def __init__(self, node: Node) -> None:
        self._context = node.context
        with self._context.handle:
            self._guard = rclpy_implementation.GuardCondition(self._context.handle)
        self._woken = threading.Event()

    def wake(self) -> None:
        """End the wait of another thread, or its next one."""
        self._woken.set()
        self._guard.trigger_guard_condition()

    def wait(self, subscriptions: Sequence[TimedSubscription], timeout_s: float) -> None:
        """Return at the first message, at `wake`, or after a time."""
        if self._woken.is_set():
            self._woken.clear()
            return
        with contextlib.ExitStack() as used:
            used.enter_context(self._context.handle)
            used.enter_context(self._guard)
            for subscription in subscriptions:
                used.enter_context(subscription.handle)
            wait_set = rclpy_implementation.WaitSet(
                len(subscriptions), 1, 0, 0, 0, 0, self._context.handle)
            with wait_set:
                wait_set.clear_entities()
                wait_set.add_guard_condition(self._guard)
                for subscription in subscriptions:
                    wait_set.add_subscription(subscription.handle)
                wait_set.wait(max(0, round(timeout_s * 1e9)))
        self._woken.clear()

    def close(self) -> None:
        self._guard.destroy_when_not_in_use()
