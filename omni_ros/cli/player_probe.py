# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Watch a running action player from outside: its status, and its lateness over a window.

Imports rclpy and the omni_ros messages; import it only where both are known to be there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import rclpy
from omni_ros.msg import PlayerStatus
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from std_srvs.srv import Trigger

from omni_ros.cli import UsageError

STATUS_TYPE = "omni_ros/msg/PlayerStatus"
RESET_SERVICE = "reset_lateness"
#: How long to look for a player; discovery on one machine takes some tenths of a second.
LOOK_S = 1.5

#: The player's status is latched.
STATUS_QOS = QoSProfile(
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
)


def find_player(seconds: float = LOOK_S) -> str | None:
    """Return the topic of a player's status that is published in this domain now, None if none is.

    A status has to come: the endpoints of a player that was killed linger in discovery for a while.
    """
    with PlayerProbe(lambda: None) as probe:
        end = time.monotonic() + seconds
        while probe.status is None and time.monotonic() < end:
            probe.follow()
            probe.spin(0.05)
        return None if probe.status is None else probe.topic


def latched_trip(status: Any, topic: str) -> str:
    """Return what is to be said of a player that is TRIPPED when it starts.

    :param topic: of its status; the reset is a service beside it.
    """
    namespace = topic.rsplit("/", 2)[0].strip("/")
    domain = f"ROS_DOMAIN_ID={os.environ.get('ROS_DOMAIN_ID') or 0} "
    start = f"{domain}ros2 launch omni_ros vla.launch.py policy:=none"
    start += f" namespace:={namespace}" if namespace else ""
    service = topic.rsplit("/", 1)[0] + "/reset"
    return (
        f"the player is TRIPPED and does not move: {status.text}. A trip is latched, also over a "
        f"restart. If its cause is gone, start a graph: {start} ; and in another shell type: "
        f"{domain}ros2 service call {service} std_srvs/srv/Trigger"
    )


class PlayerProbe:
    """A node that follows the first action player it finds, in whatever namespace.

    :param check_alive: called while waiting; raises if there is nothing left to wait for.
    """

    def __init__(self, check_alive: Callable[[], None]) -> None:
        self._check_alive = check_alive
        self._status: Any = None
        self._topic = ""
        self._out_of_sequence = False

    @property
    def status(self) -> Any:
        """The newest status, None before the first."""
        return self._status

    @property
    def topic(self) -> str:
        """The topic that is followed, "" if none was found yet."""
        return self._topic

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
        :raises UsageError: the player is TRIPPED, which no waiting ends.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.follow()
            self.spin(0.1)
            state = None if self._status is None else self._status.state
            if state == PlayerStatus.STATE_PLAYING:
                return self._status
            if state == PlayerStatus.STATE_TRIPPED:
                raise UsageError(latched_trip(self._status, self._topic))
        seen = "no status came"
        if self._status is not None:
            seen = f"its last status was: state {self._status.state}, {self._status.text!r}"
        raise RuntimeError(f"the player did not play within {timeout:g} s; {seen}")

    def reset_lateness(self, timeout: float = 10.0) -> Any:
        """Have the player forget the lateness so far; return its first status after that."""
        self._out_of_sequence = False
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
        """Return the next status to be published from now on.

        :raises RuntimeError: statuses since the last `reset_lateness` are not of one player's run,
            so that their counters cannot be compared.
        """
        self.spin(0.01)  # one that is already waiting is not from now on
        last = None if self._status is None else self._status.sequence
        self._wait(
            lambda: self._status is not None and self._status.sequence != last,
            timeout,
            "no new status",
        )
        if self._out_of_sequence:
            raise RuntimeError(
                f"the statuses on {self._topic} are out of sequence: the player was restarted "
                "meanwhile, or a second one runs in this domain"
            )
        return self._status

    def _wait(self, done: Callable[[], bool], timeout: float, text: str) -> None:
        end = time.monotonic() + timeout
        while not done():
            if time.monotonic() > end:
                raise RuntimeError(f"{text} within {timeout:g} s")
            self._executor.spin_once(timeout_sec=0.1)
            self._check_alive()

    def follow(self) -> None:
        """Subscribe to the first status that has a publisher, once."""
        if self._topic:
            return
        for name, types in self._node.get_topic_names_and_types():
            if STATUS_TYPE in types and self._node.count_publishers(name):
                self._topic = name
                self._subscription = self._node.create_subscription(
                    PlayerStatus, name, self._keep, STATUS_QOS
                )
                return

    def _keep(self, message: Any) -> None:
        if self._status is not None and message.sequence <= self._status.sequence:
            self._out_of_sequence = True
        self._status = message
