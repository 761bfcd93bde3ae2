# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The smallest chunk source: turns the first joint to and fro, one chunk from each observation.

Start the graph without a policy, then this, in two terminals with the same ROS_DOMAIN_ID:

    ros2 launch omni_ros vla.launch.py policy:=none
    python docs/examples/minimal_source.py
"""

import math
import os
import threading
from pathlib import Path

import rclpy
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from omni_ros.msg import ActionChunk, Heartbeat

SOURCE = "minimal"
JOINTS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
POSE = [0.0, -0.6, 0.35, 0.2, 0.0, 0.2]
ROWS, DT_S, BEAT_S = 50, 0.02, 0.1


class MinimalSource(Node):
    def __init__(self):
        super().__init__("minimal_source")
        self.observation, self.count = None, 0
        reliable = QoSProfile(depth=8)
        self.chunks = self.create_publisher(ActionChunk, "action_chunk", reliable)
        self.beats = self.create_publisher(Heartbeat, "heartbeat", reliable)
        self.create_subscription(JointState, "joint_states", self.see, qos_profile_sensor_data)
        self.create_timer(0.2, self.decide)
        # On a thread of its own: it must go on while decide() takes its time.
        threading.Thread(target=self.beat, daemon=True).start()

    def see(self, message):
        self.observation = message

    def beat(self):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        message = Heartbeat(source=SOURCE, pid=os.getpid(),
                            pid_scope=f"{boot}/{os.readlink('/proc/self/ns/pid')}")
        pause = threading.Event()
        while rclpy.ok():
            message.header.stamp = self.get_clock().now().to_msg()
            message.sequence += 1
            self.beats.publish(message)
            pause.wait(BEAT_S)

    def decide(self):
        if self.observation is None:
            return
        stamp = self.observation.header.stamp  # the observation's, not now
        start = stamp.sec + stamp.nanosec * 1e-9
        rows = [[0.4 * math.sin(start + (k + 1) * DT_S), *POSE[1:]] for k in range(ROWS)]
        self.count += 1
        self.chunks.publish(ActionChunk(
            header=Header(stamp=stamp, frame_id="base_link"), source=SOURCE,
            control_mode=ActionChunk.CONTROL_POSITION,
            joint_names=JOINTS, joint_units=["rad"] * len(JOINTS),
            rows=ROWS, values=[value for row in rows for value in row],
            dt=Duration(seconds=DT_S).to_msg(), life=Duration(seconds=1.0).to_msg(),
            chunk_id=self.count, observation_seq=self.count))


rclpy.init()
try:
    rclpy.spin(MinimalSource())
except (KeyboardInterrupt, ExternalShutdownException):
    pass
