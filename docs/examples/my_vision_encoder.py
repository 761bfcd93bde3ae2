# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A vision encoder of one's own, in place of ours: pictures in, image tokens out.

`encode` is where your engine goes (TensorRT, an NPU, anything). As it stands it runs the bundle's own
program, so that chunks stay the same bit for bit: begin with that, then exchange it. Try it with

    ros2 launch docs/examples/my_stage.launch.py bundle:=BUNDLE instruction:="touch the red block"

The contract is in docs/your_stage.md.
"""

import os
import time
from pathlib import Path

import rclpy
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import String

from omni_ros.bundles.named import bundle_folder
from omni_ros.images import ImageError
from omni_ros.msg import ActionChunk, PolicyStatus, StageHandoff, StageTiming, TensorHandle
from omni_ros.policy.intake import Assembled, ObservationIntake
from omni_ros.policy.pace import Pace
from omni_ros.policy.pictures import look_at
from omni_ros.policy.vision_stage import VisionEncoder
from omni_ros.programs import TensorSpec
from omni_ros.robot import load_robot
from omni_ros.robot.files import robot_file
from omni_ros.robot.policy_config import require_policy
from omni_ros.stages import fit_robot, open_stage
from omni_ros.tensors import TensorRing, TensorWriter

NEWEST = QoSProfile(depth=1)
LATCHED = QoSProfile(depth=8, durability=DurabilityPolicy.TRANSIENT_LOCAL)
SCOPE = "/".join([Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
                  os.readlink("/proc/self/ns/pid")])


def ns(stamp) -> int:
    return stamp.sec * 1_000_000_000 + stamp.nanosec


class MyVisionEncoder(Node):
    def __init__(self):
        super().__init__("my_vision_encoder")
        self.robot = load_robot(robot_file(self.declare_parameter("robot", "tabletop").value))
        opened = open_stage(bundle_folder(self.declare_parameter("bundle", "tabletop").value),
                            "vision_encoder")
        self.bundle, manifest = opened.sha256, opened.bundle.manifest
        self.policy = require_policy(self.robot)
        self.fit = fit_robot(manifest, self.robot, self.policy.cameras)  # names, units, cameras
        self.engine = VisionEncoder(opened.bundle)
        self.engine.run()  # the first takes longer than any other

        specs = [TensorSpec(f"image_{slot}", self.engine.shape, "float32")
                 for slot in range(len(self.fit.cameras))]
        self.ring = TensorRing.create("my_tokens", slots=4,
                                      slot_bytes=TensorWriter.bytes_needed(specs))
        self.writer = TensorWriter(self.ring, specs)
        self.inline = True  # until the next stage says that it shares this machine's memory
        self.pipeline, self.seq = time.time_ns(), 0
        self.instruction = self.declare_parameter("instruction", "").value
        self.instruction_seq = time.time_ns()
        self.intake = ObservationIntake(list(self.fit.cameras), self.robot.joint_names, self.policy)
        self.pace = Pace(self.policy, manifest.dimensions.chunk)

        self.tokens = self.create_publisher(StageHandoff, "image_tokens", NEWEST)
        for name, camera in self.fit.cameras.items():
            self.create_subscription(
                Image, self.robot.cameras[camera],
                lambda message, name=name: self.intake.add_image(
                    name, message, ns(message.header.stamp), time.monotonic_ns()),
                qos_profile_sensor_data)
        self.create_subscription(
            JointState, self.robot.topics["joint_states"],
            lambda message: self.intake.add_joints(
                message.name, message.position, ns(message.header.stamp), time.monotonic_ns()),
            qos_profile_sensor_data)
        self.create_subscription(String, "instruction", self.on_instruction, LATCHED)
        self.create_subscription(PolicyStatus, "policy_status", self.on_status, LATCHED)
        self.create_subscription(ActionChunk, "action_chunk", self.on_chunk, QoSProfile(depth=8))
        self.create_timer(0.01, self.look)

    def encode(self, camera, picture, tokens):
        """Write the tokens of a picture, uint8 [height, width, 3] RGB, to float32 [tokens, width]."""
        self.engine.prepare(picture, camera=camera)
        self.engine.run(tokens)

    def on_instruction(self, message, info):
        # The number has to be the same in all stages, and the message has none: its time of sending.
        if message.data.strip() != self.instruction:  # said again, it is no other one
            self.instruction, self.instruction_seq = message.data.strip(), info["source_timestamp"]
            self.pace.reset()  # the next observation is due at once

    def on_status(self, message):
        if message.stage == "fusion_backbone":
            self.inline = message.pid_scope != SCOPE or message.wants_inline

    def on_chunk(self, message):
        self.pace.arrived(ns(message.header.stamp), self.get_clock().now().nanoseconds)

    def look(self):
        """Take an observation when one is due: one at a time, the newest there is."""
        now_ns = self.get_clock().now().nanoseconds
        self.pace.lost(now_ns)  # an observation whose chunk never came does not block for ever
        if not self.instruction or not self.pace.ready(now_ns):
            return
        if not (self.tokens.get_subscription_count() and self.count_publishers("action_chunk")):
            return  # the first observation, or its chunk, would be lost
        found = self.intake.pick(now_ns, time.monotonic_ns())
        if not isinstance(found, Assembled):
            if found.loud:
                self.get_logger().warning(found.text, throttle_duration_sec=5.0)
            return
        try:
            pictures = look_at({name: found.images[name] for name in self.fit.cameras},
                               blind_std=self.policy.blind_std, check=self.engine.check)
        except ImageError as error:  # covered, or not to be read: no chunk, so the arm comes to rest
            self.get_logger().warning(str(error), throttle_duration_sec=5.0)
            return
        self.pace.started(found.stamp_ns, now_ns)
        began_ns, arrays = time.monotonic_ns(), self.writer.begin()
        for slot, (name, picture) in enumerate(pictures.items()):
            self.encode(name, picture, arrays[f"image_{slot}"])
        self.writer.commit()
        took = Duration(nanoseconds=time.monotonic_ns() - began_ns)
        self.hand_over(found, now_ns, StageTiming(stage="vision_encoder", duration=took.to_msg()))

    def hand_over(self, found, now_ns, timing):
        self.seq += 1
        message = StageHandoff(
            observation_seq=self.seq, pipeline=self.pipeline, bundle=self.bundle,
            instruction=self.instruction, instruction_seq=self.instruction_seq,
            state=self.fit.state_of(found.positions, self.robot).tolist(),
            tensors=self.writer.handles(TensorHandle, inline=self.inline), timings=[timing])
        for field, at_ns in ((message.header.stamp, found.stamp_ns), (message.started, now_ns),
                             (message.handed_over, time.time_ns())):
            field.sec, field.nanosec = divmod(at_ns, 1_000_000_000)
        self.tokens.publish(message)


rclpy.init()
try:
    node = MyVisionEncoder()
    rclpy.spin(node)
except (KeyboardInterrupt, ExternalShutdownException):
    pass
