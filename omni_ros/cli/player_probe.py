# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Watch a running action player from outside: its status, and its lateness over a window.

Imports rclpy and the omni_ros messages; import it only where both are known to be there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import rclpy
from omni_ros.msg import PlayerStatus
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from std_srvs.srv import Trigger

STATUS_TYPE = "omni_ros/msg/PlayerStatus"
RESET_SERVICE = "reset_lateness"

#: The player's status is latched.
STATUS_QOS = QoSProfile(
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
)


class PlayerProbe:
    """A node that follows the first action player it finds, in whatever namespace.

    :param check_alive: called while waiting; raises if there is nothing left to wait for.
    """

    def __init__(self, check_alive: Callable[[], None]) -> None:
        self._check_alive = check_alive
        self._status: Any = None
        self._topic = ""

    def __enter__(self) -> PlayerProbe:
        self._context = Context()
        rclpy.init(context=self._context)
        self._node = rclpy.create_node("player_probe", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def spin(self, seconds: float) -> None:
        """Take in what comes for this long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=min(left, 0.5))
            self._check_alive()

    def wait_until_playing(self, timeout: float) -> Any:
        """Return the first status with STATE_PLAYING.

        :raises RuntimeError: none came within `timeout` seconds; the message says what did.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self._follow()
            self.spin(0.1)
            if self._status is not None and self._status.state == PlayerStatus.STATE_PLAYING:
                return self._status
        seen = "no status came"
        if self._status is not None:
            seen = f"its last status was: state {self._status.state}, {self._status.text!r}"
        raise RuntimeError(f"the player did not play within {timeout:g} s; {seen}")

    def reset_lateness(self, timeout: float = 10.0) -> Any:
        """Have the player forget the lateness so far; return its first status after that."""
        name = self._topic.rsplit("/", 1)[0] + "/" + RESET_SERVICE
        client = self._node.create_client(Trigger, name)
        try:
            if not client.wait_for_service(timeout_sec=timeout):
                raise RuntimeError(f"there is no service {name} within {timeout:g} s")
            future = client.call_async(Trigger.Request())
            self._wait(future.done, timeout, f"no answer from {name}")
            answer = future.result()
        finally:
            self._node.destroy_client(client)
        if not answer.success:
            raise RuntimeError(f"{name} was refused: {answer.message}")
        return self.fresh_status()

    def fresh_status(self, timeout: float = 10.0) -> Any:
        """Return the next status to be published from now on."""
        self.spin(0.01)  # one that is already waiting is not from now on
        last = None if self._status is None else self._status.sequence
        self._wait(
            lambda: self._status is not None and self._status.sequence != last,
            timeout,
            "no new status",
        )
        return self._status

    def _wait(self, done: Callable[[], bool], timeout: float, text: str) -> None:
        end = time.monotonic() + timeout
        while not done():
            if time.monotonic() > end:
                raise RuntimeError(f"{text} within {timeout:g} s")
            self._executor.spin_once(timeout_sec=0.1)
            self._check_alive()

    def _follow(self) -> None:
        if self._topic:
            return
        for name, types in self._node.get_topic_names_and_types():
            if STATUS_TYPE in types:
                self._topic = name
                self._subscription = self._node.create_subscription(
                    PlayerStatus, name, self._keep, STATUS_QOS
                )
                return

    def _keep(self, message: Any) -> None:
        self._status = message
