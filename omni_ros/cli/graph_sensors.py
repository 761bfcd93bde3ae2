# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Made-up cameras and joint states for `omni bench graph`: their load, without a robot.

    python -m omni_ros.cli.graph_sensors ROBOT.yaml WIDTH HEIGHT RATE

Pictures of noise from a fixed pool, stamped when they are sent; all cameras within a millisecond
or so, as cameras on one trigger are. Joint states of the home pose at 100 Hz. Ends with its parent.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

#: Pictures of each camera that take turns: different ones, so that nothing can be cached.
POOL = 8
JOINTS_HZ = 100.0


def main(robot_path: str, width: int, height: int, rate_hz: float) -> int:
    """Publish until the parent is gone."""
    import rclpy
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rclpy.signals import SignalHandlerOptions
    from sensor_msgs.msg import Image, JointState

    from omni_ros.images import fill
    from omni_ros.robot import load_robot

    parent = os.getppid()
    robot = load_robot(robot_path)
    # No handler of its own: the bench ends this process while it publishes.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("made_up_sensors")
    rng = np.random.default_rng(0)
    # As drivers do: best effort loses most pictures that are larger than a socket's buffer.
    drivers = QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE)
    cameras = []
    for topic in robot.cameras.values():
        pool = []
        for _ in range(POOL):
            message = Image()
            fill(message, rng.integers(0, 256, (height, width, 3), np.uint8))
            pool.append(message)
        cameras.append((node.create_publisher(Image, topic, drivers), pool))
    joints = node.create_publisher(JointState, robot.topics["joint_states"], 10)
    pose = JointState(name=list(robot.joint_names), position=[float(x) for x in robot.home],
                      velocity=[0.0] * len(robot.joint_names))
    began, pictures, poses = time.monotonic(), 0, 0
    while os.getppid() == parent:
        now = time.monotonic() - began
        if now >= poses / JOINTS_HZ:
            pose.header.stamp = node.get_clock().now().to_msg()
            joints.publish(pose)
            poses = max(poses + 1, int(now * JOINTS_HZ))
        if now >= pictures / rate_hz:
            for publisher, pool in cameras:
                message = pool[pictures % POOL]
                message.header.stamp = node.get_clock().now().to_msg()
                publisher.publish(message)
            pictures = max(pictures + 1, int(now * rate_hz))
        due = min(poses / JOINTS_HZ, pictures / rate_hz)
        time.sleep(max(0.0, due - (time.monotonic() - began)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
