# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The policy of this graph, for OpenPI's clients: their observations take the place of the robot's.

A client's pictures and joints are published where the robot's would be, so there must be no robot:
no camera, no driver of joints, and no player that would move something by what a client asks for.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import String

from omni_ros.bundles.manifest import read_manifest
from omni_ros.bundles.named import bundle_folder
from omni_ros.images import fill
from omni_ros.msg import ActionChunk, PolicyStatus
from omni_ros.nodes._stage_node import STATUSES_QOS
from omni_ros.nodes._support import CHUNK_QOS, LATCHED_QOS, time_message, to_ns
from omni_ros.openpi.errors import RequestError
from omni_ros.openpi.graph_policy import GraphPolicy
from omni_ros.openpi.served import bundle_metadata
from omni_ros.openpi.server import PolicyServer
from omni_ros.openpi.server_settings import ServerSettings
from omni_ros.openpi.serving import ServedReply, ServedRequest
from omni_ros.stages import fit_robot

#: Longest wait for a chunk, and for the first stage to have heard a new sentence, seconds.
CHUNK_TIMEOUT_S, SENTENCE_TIMEOUT_S = 10.0, 5.0


class GraphServer:
    """Made at configure, started at activation; the executor's thread brings it the chunks."""

    def __init__(self, node: Any) -> None:
        get = node.get_parameter
        self._node, self._robot = node, node.robot
        folder = bundle_folder(get("bundle").value)
        manifest = read_manifest(folder)
        self._fit = fit_robot(manifest, node.robot, node.policy.cameras)
        self._local_source = node.local_source
        metadata = bundle_metadata(SimpleNamespace(
            manifest=manifest, bundle=SimpleNamespace(root=folder)))
        # What the stages draw their noise from is not a client's to say.
        metadata.update(takes=[])
        metadata.pop("noise_shape")
        self._policy = _OneSentence(
            self, cameras=[camera.name for camera in manifest.cameras],
            state_names=metadata["state_names"], metadata=metadata, publish=self._publish,
            timeout_s=CHUNK_TIMEOUT_S, clock_ns=lambda: node.get_clock().now().nanoseconds)
        self._settings = ServerSettings(
            host=get("serve_host").value, port=get("serve_port").value,
            token_file=get("serve_token_file").value or None)
        self._server: PolicyServer | None = None
        self._heard = threading.Condition()
        self._sentence: str | None = None
        self._stages: dict[str, PolicyStatus] = {}
        self._make_endpoints()

    def _make_endpoints(self) -> None:
        node, robot = self._node, self._robot
        self._images = {name: node.create_publisher(Image, robot.cameras[camera], 2)
                        for name, camera in self._fit.cameras.items()}
        self._joints = node.create_publisher(JointState, robot.topics["joint_states"], 10)
        self._sentences = node.create_publisher(String, "instruction", LATCHED_QOS)
        self._subscriptions_made = [
            node.create_subscription(ActionChunk, "action_chunk", self._on_chunk, CHUNK_QOS),
            node.create_subscription(PolicyStatus, "policy_status", self._on_status, STATUSES_QOS)]

    def close(self) -> None:
        self.stop()
        for publisher in (*self._images.values(), self._joints, self._sentences):
            self._node.destroy_publisher(publisher)
        for subscription in self._subscriptions_made:
            self._node.destroy_subscription(subscription)

    def start(self) -> None:
        """:raises ValueError: there is a robot. :raises OSError: the port is taken."""
        node = self._node
        topics = [*(publisher.topic_name for publisher in self._images.values()),
                  self._joints.topic_name]
        others = {f"{info.node_name} on {topic}" for topic in topics
                  for info in node.get_publishers_info_by_topic(topic)
                  if info.node_name != node.get_name()}
        if others:
            raise ValueError(f"serve: {', '.join(sorted(others))} would mix with what clients "
                             "send; launch with serve:=true world:=false and without the robot's drivers")
        players = [info.node_name for info in node.get_subscriptions_info_by_topic(
            node.resolve_topic_name("action_chunk")) if info.node_name == "action_player"]
        if players:
            raise ValueError("serve: action_player would move the robot by what clients ask for; "
                             "launch with serve:=true, which starts none")
        self._server = PolicyServer(self._policy, self._settings)
        self._server.start()
        node.get_logger().info(f"serving on {self._server.url}")

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            self._policy.refuse("the bridge is deactivated")
            server.stop()

    @property
    def url(self) -> str:
        return self._server.url if self._server is not None else ""

    def counters(self) -> dict[str, int]:
        return asdict(self._server.counters) if self._server is not None else {}

    # -- the server's thread -------------------------------------------------------------------

    def say(self, sentence: str) -> None:
        """Publish a sentence, and wait until the first stage has it: a chunk of the one before
        would answer for this one. :raises RuntimeError: it does not hear."""
        if not sentence.strip():
            raise RequestError("the prompt is empty; expected the sentence to act by")
        if sentence != self._sentence:
            self._sentence = sentence
            self._sentences.publish(String(data=sentence))
        with self._heard:
            if not self._heard.wait_for(lambda: self._has(sentence.strip()), SENTENCE_TIMEOUT_S):
                raise RuntimeError("vision_encoder does not hear the instruction; is it active?")

    def _has(self, sentence: str) -> bool:
        status = self._stages.get("vision_encoder")
        return (status is not None and status.instruction == sentence
                and status.state != PolicyStatus.STATE_INACTIVE)

    def _publish(self, request: ServedRequest, stamp_ns: int) -> None:
        missing = [name for name, pixels in request.images.items() if pixels is None]
        if missing:
            raise RequestError(f"no picture of {', '.join(missing)}: the graph masks no cameras")
        robot, stamp = self._robot, time_message(stamp_ns)
        values = robot.to_policy(robot.home)
        values[self._fit.state] = request.state
        joints = JointState(name=list(robot.joint_names))
        joints.position = robot.to_topic(values).tolist()
        joints.header.stamp = stamp
        self._joints.publish(joints)
        for name, publisher in self._images.items():
            image = Image()
            fill(image, request.images[name])
            image.header.stamp = stamp
            publisher.publish(image)

    # -- the executor's thread -----------------------------------------------------------------

    def _on_chunk(self, message: ActionChunk) -> None:
        if message.source != self._local_source or not message.rows:
            return
        rows = np.array(message.values).reshape(message.rows, -1)
        self._policy.deliver(to_ns(message.header.stamp), rows)

    def _on_status(self, message: PolicyStatus) -> None:
        with self._heard:
            self._stages[message.stage] = message
            self._heard.notify_all()
        if message.stage == "vision_encoder" and "shows nothing" in message.text:
            self._policy.refuse(message.text)


class _OneSentence(GraphPolicy):
    """Has the graph hear the sentence before it sees the pictures."""

    def __init__(self, server: GraphServer, **options: Any) -> None:
        super().__init__(**options)
        self._graph = server

    def infer(self, request: ServedRequest) -> ServedReply:
        self._graph.say(request.prompt)
        return super().infer(request)
