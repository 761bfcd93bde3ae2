# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A driver that publishes joint states at a high rate: a still arm, at the table-top's home."""

from __future__ import annotations

import sys
import time

import rclpy
from sensor_msgs.msg import JointState

from omni_ros.nodes._support import load_robot_parameter


def main() -> int:
    rclpy.init(args=sys.argv)
    node = rclpy.create_node("fast_joints")
    period = 1.0 / node.declare_parameter("rate", 500.0).value
    robot = load_robot_parameter(node.declare_parameter("robot", "tabletop").value)
    publisher = node.create_publisher(JointState, "joint_states", 5)
    message = JointState(name=robot.joint_names, position=robot.home.tolist())
    due = time.monotonic()
    while rclpy.ok():
        message.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(message)
        due += period
        time.sleep(max(0.0, due - time.monotonic()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
