# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The scripted expert as a source of chunks: what a perfect policy would do in the same graph.

It knows where the blocks are, takes no time, and goes the same way as a policy's chunks: over DDS to
the player. It is served by whoever looks at the world anyway, and beats while it is served.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile

from omni_ros.msg import ActionChunk, Heartbeat
from omni_ros.nodes._support import duration_message, pid_scope, time_message, to_ns
from omni_ros.robot import Robot
from omni_ros.world import expert
from omni_ros.world.scene import BLOCK_NAMES
from omni_ros.world.tasks import Task

SOURCE = "expert"
LIFE_S = 1.5


class ExpertSource:
    """Publishes `action_chunk` and `heartbeat`.

    :param horizon: rows that are played before the next chunk.
    """

    def __init__(self, graph: Any, robot: Robot, horizon: int) -> None:
        self._graph = graph
        self._robot = robot
        self._period_ns = round(horizon / expert.RATE_HZ * 1e9)
        node = graph.node
        self._chunks = node.create_publisher(ActionChunk, "action_chunk", QoSProfile(depth=8))
        self._beats = node.create_publisher(Heartbeat, "heartbeat", QoSProfile(depth=10))
        self._beat = Heartbeat(source=SOURCE, pid=os.getpid(), pid_scope=pid_scope())
        self._count = 0
        self._due_ns = 0
        self._scene: tuple[np.ndarray, np.ndarray] | None = None

    def begin(self, yaws: np.ndarray, pad: np.ndarray) -> None:
        """Learn what the world does not tell of an episode: the blocks' yaws (4,), the pad (2,)."""
        self._scene = (yaws, pad)
        self._due_ns = 0

    def serve(self, task: Task | None, look: Any) -> None:
        """Beat, and publish a chunk for the task if one is due; none if there is no task."""
        now_ns = self._graph.now_ns()
        self._beat.header.stamp = time_message(now_ns)
        self._beat.sequence += 1
        self._beats.publish(self._beat)
        joints = self._graph.joints
        if task is None or joints is None or now_ns < self._due_ns:
            return
        self._due_ns = now_ns + self._period_ns
        positions = dict(zip(joints.name, joints.position))
        measured = np.array([positions[name] for name in self._robot.joint_names])
        yaws, pad = self._scene
        blocks = np.stack([look.objects[name] for name in BLOCK_NAMES])
        rows = expert.plan(measured[None], blocks[None], yaws[None], pad[None],
                           np.array([task.skill_index]), np.array([task.block_index])).rows[0]
        self._publish(rows, to_ns(joints.header.stamp))

    def _publish(self, rows: np.ndarray, stamp_ns: int) -> None:
        self._count += 1
        chunk = ActionChunk(
            control_mode=ActionChunk.CONTROL_POSITION, joint_names=self._robot.joint_names,
            joint_units=["rad"] * len(self._robot.joint_names), rows=len(rows),
            chunk_id=self._count, observation_seq=self._count, source=SOURCE,
            dt=duration_message(round(1e9 / expert.RATE_HZ)),
            life=duration_message(round(LIFE_S * 1e9)))
        chunk.header.stamp = time_message(stamp_ns)
        chunk.header.frame_id = self._robot.base_frame
        chunk.values.frombytes(np.ascontiguousarray(rows, dtype=np.float64).tobytes())
        self._chunks.publish(chunk)
