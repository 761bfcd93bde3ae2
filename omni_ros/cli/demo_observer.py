# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the demonstration sees of the running graph.

Imports rclpy and the omni_ros messages; import it only where both are known to be there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

from omni_ros.cli.launched import rise
from omni_ros.cli.player_probe import PlayerProbe
from omni_ros.player.reasons import Reason
from omni_ros.srv import GetContacts
from omni_ros.world import kinematics
from omni_ros.world.scene import JOINT_NAMES


class DemoObserver(PlayerProbe):
    """Follows the player's status and the arm's joints for a while."""

    def __init__(self, check_alive: Callable[[], None]) -> None:
        super().__init__(check_alive)
        self._joints: list[list[float]] = []
        self._ages: list[float] = []
        self._watching = False

    def watch(self, seconds: float) -> None:
        """Take in what happens for this long; tick lateness is counted anew."""
        namespace = self._topic.rsplit("/", 2)[0]
        subscription = self._node.create_subscription(
            JointState, f"{namespace}/joint_states", self._keep_joints, qos_profile_sensor_data)
        self._before = self.reset_lateness()
        started = time.monotonic()
        self._watching = True
        self.spin(seconds)
        self._after = self.fresh_status()
        self._watching = False
        self._seconds = time.monotonic() - started
        self._node.destroy_subscription(subscription)
        self._blocks = self._see_blocks(f"{namespace}/world/get_contacts")

    def facts(self) -> dict[str, Any]:
        """Return counts and seconds over the time watched, plain values and one array."""
        before, after = self._before, self._after
        ticks = rise(before, after, "ticks")
        missed = rise(before, after, "ticks_missed")
        joints = np.array(self._joints).reshape(-1, len(JOINT_NAMES))
        tips = kinematics.forward(joints)
        ages = np.array(self._ages or [np.nan])
        return {
            "seconds": self._seconds,
            "rate_hz": round((ticks + missed) / self._seconds),
            "ticks": ticks,
            "missed": missed,
            "p50": after.lateness_p50,
            "p99": after.lateness_p99,
            "max": after.lateness_max,
            "received": rise(before, after, "chunks_received"),
            "played": rise(before, after, "chunks_played"),
            "refused": _named(before.refused, after.refused),
            "limited": _named(before.limited, after.limited),
            "stops": rise(before, after, "stops"),
            "age_p50": float(np.nanmedian(ages)),
            "age_max": float(np.nanmax(ages)),
            "blocks": self._blocks,
            "joint_positions": joints,
            "tip_path_m": float(np.linalg.norm(np.diff(tips, axis=0), axis=1).sum()),
        }

    def _see_blocks(self, service: str) -> dict[str, tuple[float, float, float]]:
        client = self._node.create_client(GetContacts, service)
        try:
            if not client.wait_for_service(timeout_sec=5.0):
                return {}  # no simulated world
            future = client.call_async(GetContacts.Request())
            self._wait(future.done, 5.0, f"no answer from {service}")
            answer = future.result()
        finally:
            self._node.destroy_client(client)
        return {name: (at.x, at.y, at.z)
                for name, at in zip(answer.object_names, answer.object_positions)}

    def _keep(self, message: Any) -> None:
        super()._keep(message)
        if self._watching and np.isfinite(message.observation_age):
            self._ages.append(message.observation_age)

    def _keep_joints(self, message: JointState) -> None:
        if self._watching:
            by_name = dict(zip(message.name, message.position))
            self._joints.append([by_name[name] for name in JOINT_NAMES])


def _named(before: Any, after: Any) -> dict[str, int]:
    """Return {reason's name: count} for those that rose."""
    return {Reason(code).name.lower().replace("_", " "): int(new - old)
            for code, (old, new) in enumerate(zip(before, after)) if new > old}
