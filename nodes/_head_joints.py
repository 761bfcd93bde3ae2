# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The state as it is now, for an action head that is run again on the prefix that it has."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState

from omni_ros.nodes._support import JOINT_STATES_QOS, to_ns
from omni_ros.policy.intake import FUTURE_NS
from omni_ros.policy.joint_history import JointHistory


class FreshJoints:
    """Joint states by name, from any number of publishers. For the stage's thread."""

    def __init__(self, node: Any) -> None:
        """:param node: an action head's, configured."""
        self._node, robot = node, node.robot
        self._limit_ns = round(node.policy.joints_timeout_s * 1e9)
        self._history = JointHistory(list(robot.joint_names), span_ns=self._limit_ns)
        self._joints = node.polled(JointState, robot.topics["joint_states"], JOINT_STATES_QOS)

    def forget(self) -> None:
        """Forget what came before an activation."""
        self._history.clear()
        for _ in self._joints.take(most=64):
            pass

    def read(self, now_ns: int) -> tuple[int, np.ndarray] | None:
        """Return the newest state and its stamp; None if a joint was not heard of lately.

        :return: nanoseconds, and f32 [state] in the policy's units and the bundle's order.
        """
        simulated = self._node.get_parameter("use_sim_time").value
        for message, came_ns, _ in self._joints.take_timed(most=64):
            self._history.add(message.name, message.position, to_ns(message.header.stamp),
                              now_ns if simulated else came_ns)
        offset_ns = 0 if simulated else now_ns - time.monotonic_ns()
        pose = self._history.nearest(now_ns, offset_ns, until_ns=now_ns + FUTURE_NS)
        if pose is None or now_ns - pose.oldest_ns > self._limit_ns:
            return None
        state = self._node.fit.state_of(pose.positions, self._node.robot)
        return pose.oldest_ns, state.astype(np.float32)
