# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the report wants to see of a running graph: pictures, joints, commands.

Messages are kept as the bytes they came in: taking them apart while the arm moves would cost more
time than the player has to spare. Imports rclpy; import it only where that is known to be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

from omni_ros.images import to_rgb
from omni_ros.robot import Robot

CAMERAS = ("front", "wrist")


class DemoRecorder:
    """Keeps what comes between `begin` and `end`; times are nanoseconds of ROS time."""

    def __init__(self, graph: Any, robot: Robot) -> None:
        self._graph, self._robot = graph, robot
        self._kept: dict[str, list[tuple[int, bytes]]] | None = None
        topics = robot.topics["cameras"]
        for camera in CAMERAS:
            if camera in topics:
                self._listen(Image, topics[camera], camera, qos_profile_sensor_data)
        self._listen(JointState, robot.topics["joint_states"], "joints", qos_profile_sensor_data)
        if robot.player.output == "joint_trajectory":
            self._listen(JointTrajectory, robot.command_topic, "commands", QoSProfile(depth=20))

    def begin(self) -> None:
        """Keep what comes from now on, and forget the rest."""
        self._kept = {name: [] for name in (*CAMERAS, "joints", "commands")}

    def end(self) -> dict[str, list[tuple[int, bytes]]]:
        """Return what was kept, by name, as (time of receipt, message in bytes)."""
        kept, self._kept = self._kept or {}, None
        return kept

    def _listen(self, kind: Any, topic: str, name: str, qos: Any) -> None:
        def keep(message: bytes) -> None:
            if self._kept is not None:
                self._kept[name].append((self._graph.now_ns(), message))

        self._graph.node.create_subscription(kind, topic, keep, qos, raw=True)


def joint_positions(
    kept: Sequence[tuple[int, bytes]], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return stamps (n,) in nanoseconds and positions (n, joints) of kept joint states."""
    stamps, positions = [], []
    for _, message in kept:
        state = deserialize_message(message, JointState)
        by_name = dict(zip(state.name, state.position))
        if all(name in by_name for name in names):
            stamps.append(state.header.stamp.sec * 1_000_000_000 + state.header.stamp.nanosec)
            positions.append([by_name[name] for name in names])
    return np.array(stamps, np.int64), np.array(positions).reshape(-1, len(names))


def commands(
    kept: Sequence[tuple[int, bytes]], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return when each kept command was due (n,), nanoseconds, and its positions (n, joints).

    A trajectory without a stamp counts from its receipt; its first point is the command.
    """
    times, positions = [], []
    for received_ns, message in kept:
        trajectory = deserialize_message(message, JointTrajectory)
        point = trajectory.points[0]
        after = point.time_from_start
        times.append(received_ns + after.sec * 1_000_000_000 + after.nanosec)
        by_name = dict(zip(trajectory.joint_names, point.positions))
        positions.append([by_name[name] for name in names])
    return np.array(times, np.int64), np.array(positions).reshape(-1, len(names))


def picture(message: bytes) -> np.ndarray:
    """Return a kept picture as RGB, uint8 (height, width, 3)."""
    return to_rgb(deserialize_message(message, Image)).copy()


def nearest(kept: Sequence[tuple[int, bytes]], time_ns: int) -> bytes | None:
    """Return the kept message that was received nearest to a time, None if there is none."""
    return min(kept, key=lambda entry: abs(entry[0] - time_ns))[1] if kept else None
