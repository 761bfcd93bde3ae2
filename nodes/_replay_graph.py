# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The graph that a recording is played into: what is published to it, and whether that may be done."""

from __future__ import annotations

from typing import Any, Iterable

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String

from omni_ros.msg import PlayerStatus, PolicyStatus
from omni_ros.nodes._stage_node import STAGES, STATUSES_QOS
from omni_ros.nodes._support import LATCHED_QOS, time_message
from omni_ros.player.reasons import Reason
from omni_ros.replay.contents import CAMERA, Contents
from omni_ros.replay.picture_store import PictureStore
from omni_ros.replay.plans import Plan
from omni_ros.replay.playing import Joint
from omni_ros.robot import Robot

#: Nothing of a recording may be lost on the way.
RELIABLE_QOS = QoSProfile(
    depth=64, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE)
CLOCK_QOS = QoSProfile(
    depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE)
_STOPPED = (PlayerStatus.STATE_STALE, PlayerStatus.STATE_TRIPPED)


class ReplayGraph:
    """Publishers of a robot's senses, and what the graph says of itself."""

    def __init__(self, node: Node, robot: Robot, contents: Contents, plans: Iterable[Plan],
                 pictures: PictureStore) -> None:
        self._node, self._robot, self._pictures = node, robot, pictures
        self.stages: dict[str, PolicyStatus] = {}
        self.player: PlayerStatus | None = None
        #: Times the player stopped, by reason; counted from `began` on.
        self.stops: dict[str, int] = {}
        self.began = False
        #: Robot topic and message type of each camera topic of the bag.
        self._topics: dict[str, tuple[str, Any]] = {}
        cameras = {topic: role[len(CAMERA):] for role, topic in contents.topics.items()
                   if role.startswith(CAMERA)}
        for topic in {wanted.topic for plan in plans for wanted in plan.wanted}:
            compressed = contents.bag.topics[topic].endswith("CompressedImage")
            own = robot.cameras[cameras[topic]] + ("/compressed" if compressed else "")
            self._topics[topic] = own, CompressedImage if compressed else Image
        self._publishers: dict[str, Any] = {}
        node.create_subscription(PolicyStatus, "policy_status", self._on_stage, STATUSES_QOS)
        node.create_subscription(PlayerStatus, "action_player/status", self._on_player, LATCHED_QOS)

    @property
    def topics(self) -> list[str]:
        """What is published, but the clock and the sentence."""
        return [self._robot.topics["joint_states"], *(own for own, _ in self._topics.values())]

    def others(self) -> list[str]:
        """Name who publishes already what is to be published here: a robot's drivers, another replay."""
        found = []
        for topic in ("/clock", *self.topics):
            name = self._node.resolve_topic_name(topic)
            found += [f"{info.node_name} publishes {name}"
                      for info in self._node.get_publishers_info_by_topic(name)
                      if info.node_name != self._node.get_name()]
        return found

    def may_move(self) -> str:
        """Say who would be moved by the player's commands; "" if nobody."""
        if self.player is None or self.player.dry_run:
            return ""
        name = self._node.resolve_topic_name(self._robot.command_topic)
        listeners = [info.node_name for info in self._node.get_subscriptions_info_by_topic(name)
                     if info.node_name != "recorder"]
        return f"{', '.join(listeners)} would follow {name}" if listeners else ""

    def connect(self) -> None:
        """Begin to publish."""
        make = self._node.create_publisher
        self._clock = make(Clock, "/clock", CLOCK_QOS)
        self._joints = make(JointState, self._robot.topics["joint_states"], RELIABLE_QOS)
        self._sentences = make(String, "instruction", LATCHED_QOS)
        self._publishers = {topic: make(kind, own, RELIABLE_QOS)
                            for topic, (own, kind) in self._topics.items()}

    def lacks(self) -> list[str]:
        """Say what the graph lacks before it can begin; nothing if it is ready."""
        node, lacks = self._node, []
        for publisher in (self._joints, *self._publishers.values()):
            if not publisher.get_subscription_count():
                lacks.append(f"nobody listens to {publisher.topic_name}")
        if not node.count_publishers("action_chunk"):
            lacks.append(f"nobody publishes {node.resolve_topic_name('action_chunk')}")
        asleep = [stage for stage in STAGES if stage in self.stages
                  and self.stages[stage].state == PolicyStatus.STATE_INACTIVE]
        if asleep:
            lacks.append(f"{', '.join(asleep)} not active")
        if self.player is not None and self.player.state == PlayerStatus.STATE_INACTIVE:
            lacks.append("action_player not active")
        return lacks

    # -- publishing ----------------------------------------------------------------------------

    def tell_time(self, now_ns: int) -> None:
        self._clock.publish(Clock(clock=time_message(now_ns)))

    def say(self, sentence: str) -> None:
        self._sentences.publish(String(data=sentence))

    def move(self, joint: Joint) -> None:
        message = JointState(name=list(joint.names), position=list(map(float, joint.positions)),
                             velocity=list(map(float, joint.velocities)))
        message.header.stamp = time_message(joint.stamp_ns)
        self._joints.publish(message)

    def show(self, plan: Plan) -> list[str]:
        """Publish the pictures of an observation; return the cameras whose picture is not there."""
        data = {wanted: self._pictures.fetch(wanted.topic, wanted.stamp_ns) for wanted in plan.wanted}
        missing = [wanted.camera for wanted, found in data.items() if found is None]
        if not missing:
            for wanted, found in data.items():
                self._publishers[wanted.topic].publish(found)
        return missing

    # -- hearing -------------------------------------------------------------------------------

    def _on_stage(self, message: PolicyStatus) -> None:
        if message.stage in STAGES:
            self.stages[message.stage] = message

    def _on_player(self, message: PlayerStatus) -> None:
        before, self.player = self.player, message
        if self.began and message.state in _STOPPED and (
                before is None or before.state not in _STOPPED):
            for reason in message.reasons or [message.trip_reason]:
                name = Reason(reason).name
                self.stops[name] = self.stops.get(name, 0) + 1
