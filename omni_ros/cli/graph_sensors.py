# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Made-up cameras and joint states for `omni bench graph`: their load, without a robot.

    python -m omni_ros.cli.graph_sensors ROBOT.yaml CAMERA WIDTH HEIGHT RATE
    python -m omni_ros.cli.graph_sensors ROBOT.yaml joints

A process each, as drivers are. Pictures of noise from a fixed pool, stamped when they are sent,
which is at full periods of the wall clock, as of cameras on one trigger. Joint states of the home
pose at 100 Hz. Ends with its parent.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import time

import numpy as np

#: Pictures of each camera that take turns: different ones, so that nothing can be cached.
POOL = 8
JOINTS_HZ = 100.0


def main(robot_path: str, what: str, *picture: str) -> int:
    """Publish one camera, or the joint states, until the parent is gone."""
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    from omni_ros.robot import load_robot

    parent = os.getppid()
    robot = load_robot(robot_path)
    # No handler of its own: the bench ends this process while it publishes.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node(f"made_up_{what}")
    if what == "joints":
        send, rate_hz = _joints(node, robot), JOINTS_HZ
    else:
        width, height, rate_hz = int(picture[0]), int(picture[1]), float(picture[2])
        send = _camera(node, robot.cameras[what], width, height)
    while os.getppid() == parent:
        now = time.time()
        time.sleep(math.ceil(now * rate_hz + 1e-3) / rate_hz - now)
        send()
    return 0


def _camera(node, topic: str, width: int, height: int):
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from sensor_msgs.msg import Image

    from omni_ros.images import fill

    # As drivers do: best effort loses most pictures that are larger than a socket's buffer.
    publisher = node.create_publisher(
        Image, topic, QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE))
    rng = np.random.default_rng(0)
    pool = [Image() for _ in range(POOL)]
    for message in pool:
        fill(message, rng.integers(0, 256, (height, width, 3), np.uint8))
    turns = itertools.cycle(pool)

    def send() -> None:
        message = next(turns)
        message.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(message)

    return send


def _joints(node, robot):
    from sensor_msgs.msg import JointState

    publisher = node.create_publisher(JointState, robot.topics["joint_states"], 10)
    pose = JointState(name=list(robot.joint_names), position=[float(x) for x in robot.home],
                      velocity=[0.0] * len(robot.joint_names))

    def send() -> None:
        pose.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(pose)

    return send


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
