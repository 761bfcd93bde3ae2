# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a remote policy is shown: cameras, joints and the sentence, polled by one thread."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Iterator

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String

from omni_ros.images import ImageError
from omni_ros.nodes._stage_camera import CameraInput
from omni_ros.nodes._stage_wait import TimedSubscription
from omni_ros.nodes._support import COMMAND_QOS, JOINT_STATES_QOS, LATCHED_QOS, to_ns
from omni_ros.openpi.observe import RobotView
from omni_ros.policy.intake import NOTHING_NEW, Assembled, ObservationIntake
from omni_ros.policy.pictures import look_at
from omni_ros.robot import Robot
from omni_ros.robot.policy_config import PolicyConfig
from omni_ros.stages.gate import read_sentence

#: Pictures kept of each camera, and seconds of joints: a chunk is compared when it comes, and what
#: it was decided from lies back by its latency.
KEEP, SPAN_S = 48, 3.0


@dataclass(frozen=True)
class Seen:
    """An observation as it is sent. :param positions: f64 [joints], topic units."""

    stamp_ns: int
    positions: np.ndarray
    message: dict[str, Any]


class Senses:
    """Assembles observations for a remote policy. For one thread, but for `destroy`."""

    def __init__(self, node: Node, robot: Robot, policy: PolicyConfig, view: RobotView, *,
                 compressed: bool) -> None:
        kind, suffix = (CompressedImage, "/compressed") if compressed else (Image, "")
        fields = view.mapping.observation.cameras
        self._view, self._blind_std = view, policy.blind_std
        self._slop_ns = round(policy.slop_s * 1e9)
        self._optional = {entry.camera: None for entry in fields if entry.optional}
        self.cameras = {entry.camera: CameraInput(node, kind, robot.cameras[entry.camera] + suffix)
                        for entry in fields}
        self._joints = TimedSubscription(
            node, JointState, robot.topics["joint_states"], JOINT_STATES_QOS)
        # Two, so that a latched sentence is heard at once and one from a volatile publisher at all.
        self._sentences = tuple(TimedSubscription(node, String, "instruction", qos)
                                for qos in (LATCHED_QOS, COMMAND_QOS))
        self._intake = ObservationIntake(
            [name for name in self.cameras if name not in self._optional],
            list(robot.joint_names), policy, keep=KEEP, span_s=SPAN_S)
        self.sentence = self.sentence_fault = ""
        #: What the last observation lacked, for a person; "" if nothing.
        self.text = ""

    def news(self, *, pictures: bool) -> Iterator[TimedSubscription]:
        """Yield what a wait should end with: a sentence, and pictures where some are wanted."""
        yield from self._sentences
        if pictures:
            yield from (camera.current() for camera in self.cameras.values())

    def watched(self) -> tuple:
        """Return what /diagnostics should look after."""
        return (self._joints, self._sentences[1], *self.cameras.values())

    def reset(self) -> None:
        """Forget all but the sentence: at activation, and when the clock went back."""
        self._intake.reset()
        self._optional = dict.fromkeys(self._optional)

    def hear(self) -> bool:
        """Take the newest sentence; return whether it is another one."""
        before = self.sentence
        heard = [(came_ns, message.data) for subscription in self._sentences
                 for message, came_ns, _ in subscription.take_timed()]
        for _, text in sorted(heard):
            try:
                self.sentence, self.sentence_fault = read_sentence(text), ""
            except ValueError as error:
                self.sentence, self.sentence_fault = "", str(error)
        return self.sentence != before

    def take_in(self, now_ns: int, simulated: bool) -> None:
        """Take what cameras and joints have sent; simulated time has one clock for all."""
        for message, came_ns, _ in self._joints.take_timed(most=64):
            self._intake.add_joints(message.name, message.position, to_ns(message.header.stamp),
                                    now_ns if simulated else came_ns)
        for name, camera in self.cameras.items():
            for message, came_ns, _ in camera.take_timed():
                stamp_ns = to_ns(message.header.stamp)
                if name in self._optional:
                    self._optional[name] = (stamp_ns, message)
                else:
                    self._intake.add_image(name, message, stamp_ns,
                                           now_ns if simulated else came_ns)

    def pick(self, now_ns: int, simulated: bool) -> Seen | None:
        """Return the newest observation that was not picked before; else `text` says why not."""
        found = self._intake.pick(now_ns, now_ns if simulated else time.monotonic_ns())
        if isinstance(found, Assembled):
            return self._seen(found, self.sentence)
        if found.code != NOTHING_NEW or found.loud:
            self.text = found.text
        return None

    def at(self, stamp_ns: int, now_ns: int, simulated: bool) -> Seen | None:
        """Return the observation that another policy has picked, if it is still known."""
        found = self._intake.at(stamp_ns, now_ns, now_ns if simulated else time.monotonic_ns())
        if found is None:
            self.text = "what the local chunk was decided from is not known here (any more)"
            return None
        return self._seen(found, self.sentence)

    def _seen(self, found: Assembled, sentence: str) -> Seen | None:
        images = dict(found.images)
        for name, entry in self._optional.items():
            if entry is not None and abs(entry[0] - found.stamp_ns) <= self._slop_ns:
                images[name] = entry[1]
        try:
            pictures = look_at(images, blind_std=self._blind_std)
        except ImageError as error:
            self.text = str(error)
            return None
        try:
            message = self._view.observation(pictures, found.positions, sentence)
        except ValueError as error:  # also MissingPicture
            self.text = str(error)
            return None
        self.text = ""
        return Seen(found.stamp_ns, found.positions, message)

    def destroy(self) -> None:
        for subscription in (self._joints, *self._sentences, *self.cameras.values()):
            subscription.destroy()
