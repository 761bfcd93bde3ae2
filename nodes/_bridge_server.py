# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The policy of this graph, for OpenPI's clients: their observations take the place of the robot's.

A client's pictures and joints are published where the robot's would be, so there must be no robot:
no camera, no driver of joints, nobody else who says sentences, and no player that would move
something by what a client asks for.
That is looked at before the first client is let in, and again before anything of a request goes out.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import String

from omni_ros.bundles.manifest import read_manifest
from omni_ros.bundles.named import bundle_folder
from omni_ros.images import fill
from omni_ros.msg import ActionChunk, ActionDraw, PolicyStatus
from omni_ros.nodes._stage_draws import ASKED, DRAWS_QOS, KEPT, USED
from omni_ros.nodes._stage_node import STATUSES_QOS
from omni_ros.nodes._support import CHUNK_QOS, LATCHED_QOS, time_message, to_ns
from omni_ros.openpi.errors import RequestError
from omni_ros.openpi.graph_policy import GraphPolicy
from omni_ros.openpi.served import bundle_metadata
from omni_ros.openpi.server import PolicyServer
from omni_ros.openpi.server_settings import ServerSettings
from omni_ros.openpi.serving import TAKES, ServedReply, ServedRequest
from omni_ros.policy.noise import noise
from omni_ros.stages import fit_robot

#: Longest wait for a chunk, and for the stages to be there and have heard a new sentence, seconds.
CHUNK_TIMEOUT_S, HEARING_TIMEOUT_S = 10.0, 5.0
#: A robot that is there has been discovered after this long, seconds.
DISCOVERY_S = 1.5
#: Longest wait for an action head that says what it draws with, seconds.
HEAD_DISCOVERY_S = 5.0
#: After a chunk, what it was drawn with is told within this long, seconds.
DRAWN_TIMEOUT_S = 1.0
ENDED = "the bridge is deactivated"


class GraphServer:
    """Made at configure, started at activation; the executor's thread brings it the chunks."""

    def __init__(self, node: Any) -> None:
        get = node.get_parameter
        self._node, self._robot = node, node.robot
        folder = bundle_folder(get("bundle").value)
        manifest = read_manifest(folder)
        self._fit = fit_robot(manifest, node.robot, node.policy.cameras)
        self._local_source = node.local_source
        self._metadata = bundle_metadata(SimpleNamespace(
            manifest=manifest, bundle=SimpleNamespace(root=folder)))
        self._cameras = [camera.name for camera in manifest.cameras]
        self._noise_shape = tuple(self._metadata["noise_shape"])
        self._settings = ServerSettings(
            host=get("serve_host").value, port=get("serve_port").value,
            token_file=get("serve_token_file").value or None)
        self._policy: _Policy | None = None
        self._server: PolicyServer | None = None
        self._heard = threading.Condition()
        self._sentence: str | None = None
        self._stages: dict[str, PolicyStatus] = {}
        self._drawn: deque[int] = deque(maxlen=KEPT)
        self._ending = False
        self._make_endpoints()
        self._made = time.monotonic()

    def _make_endpoints(self) -> None:
        node, robot = self._node, self._robot
        self._images = {name: node.create_publisher(Image, robot.cameras[camera], 2)
                        for name, camera in self._fit.cameras.items()}
        self._joints = node.create_publisher(JointState, robot.topics["joint_states"], 10)
        self._sentences = node.create_publisher(String, "instruction", LATCHED_QOS)
        self._draws = node.create_publisher(ActionDraw, ASKED, DRAWS_QOS)
        self._subscriptions_made = [
            node.create_subscription(ActionChunk, "action_chunk", self._on_chunk, CHUNK_QOS),
            node.create_subscription(ActionDraw, USED, self._on_drawn, DRAWS_QOS),
            node.create_subscription(PolicyStatus, "policy_status", self._on_status, STATUSES_QOS)]

    def close(self) -> None:
        self.stop()
        for publisher in (*self._images.values(), self._joints, self._sentences, self._draws):
            self._node.destroy_publisher(publisher)
        for subscription in self._subscriptions_made:
            self._node.destroy_subscription(subscription)

    def start(self) -> None:
        """:raises ValueError: there is a robot. :raises OSError: the port is taken."""
        node = self._node
        while not self._in_the_way() and time.monotonic() < self._made + DISCOVERY_S:
            time.sleep(0.05)
        problem = self._in_the_way()
        if problem:
            raise ValueError(problem)
        metadata = dict(self._metadata)
        # An action head of somebody else's may draw by itself: then clients are told beforehand. One of
        # ours may be found late on a busy machine, and would be denied for as long as this serves.
        until = time.monotonic() + HEAD_DISCOVERY_S
        while not node.count_publishers(USED) and time.monotonic() < until:
            time.sleep(0.05)
        takes = TAKES if node.count_publishers(USED) else ()
        if not takes:
            metadata.update(takes=[])
            metadata.pop("noise_shape")
            node.get_logger().warning(
                f"no action head publishes {USED}: seed, noise and number of steps of clients are "
                "refused")
        self._policy = _Policy(
            self, cameras=self._cameras, state_names=metadata["state_names"], metadata=metadata,
            publish=self._publish, timeout_s=CHUNK_TIMEOUT_S, takes=takes,
            clock_ns=lambda: node.get_clock().now().nanoseconds)
        self._ending = False
        server = PolicyServer(self._policy, self._settings)
        try:
            server.start()
        except OSError as error:
            raise OSError(
                f"serve: cannot listen on {self._settings.host}:{self._settings.port} ({error}); set "
                "serve_port to another one, or to 0 for a free one") from error
        self._server = server
        node.get_logger().info(f"serving on {server.url}")

    def _in_the_way(self) -> str:
        """Say what makes serving dangerous; "" if nothing does."""
        node = self._node
        me = (node.get_name(), node.get_namespace())
        others = set()
        for publisher in (*self._images.values(), self._joints, self._sentences):
            found = [(info.node_name, info.node_namespace)
                     for info in node.get_publishers_info_by_topic(publisher.topic_name)]
            if me in found:
                found.remove(me)  # once: another of the same name is another
            others |= {f"{name} on {publisher.topic_name}" for name, _ in found}
        if others:
            return (f"serve: {', '.join(sorted(others))} would mix with what clients send; launch "
                    "with serve:=true, which starts no world, and without the robot's drivers")
        players = {info.node_name for info in node.get_subscriptions_info_by_topic(
            node.resolve_topic_name("action_chunk"))} & {"action_player"}
        if players:
            return ("serve: action_player would move the robot by what clients ask for; launch with "
                    "serve:=true, which starts none")
        return ""

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        # The executor's thread waits here: what waits for something that it would bring waits no more.
        with self._heard:
            self._ending = True
            self._heard.notify_all()
        self._policy.end(ENDED)
        server.stop()
        self._policy = None

    @property
    def url(self) -> str:
        return self._server.url if self._server is not None else ""

    def counters(self) -> dict[str, int]:
        return asdict(self._server.counters) if self._server is not None else {}

    # -- the server's thread -------------------------------------------------------------------

    def prepare(self, request: ServedRequest) -> None:
        """Have the graph hear the sentence before it sees the pictures: a chunk of the one before
        would answer for this one.

        :raises RequestError: the request does not fit. :raises RuntimeError: the graph does not.
        """
        sentence = request.prompt.strip()
        if not sentence:
            raise RequestError("the prompt is empty; expected the sentence to act by")
        if "\0" in sentence:
            raise RequestError("the prompt has a NUL in it, where ROS would cut it off; expected text")
        missing = [name for name, pixels in request.images.items() if pixels is None]
        if missing:
            raise RequestError(f"no picture of {', '.join(missing)}: the graph masks no cameras")
        if request.noise is not None and request.noise.shape != self._noise_shape:
            raise RequestError(f"`noise` has the shape {list(request.noise.shape)}; expected "
                               f"{list(self._noise_shape)}")
        if request.noise is not None and not np.isfinite(request.noise).all():
            raise RequestError("`noise` is not finite; expected a number for every value")
        problem = self._in_the_way()
        if problem:
            raise RuntimeError(problem)
        self._wait_for_listeners()
        with self._heard:
            heard = self._has(sentence)
        # Said again where somebody else has said another one meanwhile.
        if sentence != self._sentence or not heard:
            self._sentence = sentence
            self._sentences.publish(String(data=sentence))
        with self._heard:
            heard = self._heard.wait_for(
                lambda: self._ending or self._has(sentence), HEARING_TIMEOUT_S)
        if self._ending:
            raise RuntimeError(ENDED)
        if not heard:
            raise RuntimeError("vision_encoder does not hear the instruction; is it active?")

    def _wait_for_listeners(self) -> None:
        """What is published before a stage has found the publisher is lost."""
        publishers = [*self._images.values(), self._joints, self._draws]
        until = time.monotonic() + HEARING_TIMEOUT_S
        while True:
            deaf = [p.topic_name for p in publishers if not p.get_subscription_count()]
            if not deaf or self._ending:
                return
            if time.monotonic() > until:
                raise RuntimeError(f"nobody listens on {', '.join(deaf)}; are all stages of the "
                                   "policy active?")
            time.sleep(0.02)

    def was_drawn(self, stamp_ns: int) -> bool:
        """Whether the action head says that a chunk is drawn with what was asked for; may wait.

        :raises RuntimeError: the server ends.
        """
        with self._heard:
            self._heard.wait_for(lambda: self._ending or stamp_ns in self._drawn, DRAWN_TIMEOUT_S)
            if self._ending:
                raise RuntimeError(ENDED)
            return stamp_ns in self._drawn

    def _has(self, sentence: str) -> bool:
        status = self._stages.get("vision_encoder")
        return (status is not None and status.instruction == sentence
                and status.state != PolicyStatus.STATE_INACTIVE)

    def _publish(self, request: ServedRequest, stamp_ns: int) -> None:
        robot, stamp = self._robot, time_message(stamp_ns)
        draw = ActionDraw(steps=request.steps or 0)
        draw.header.stamp = stamp
        drawn = request.noise if request.noise is not None else noise(
            self._noise_shape, seed=request.seed or 0, stamp_ns=request.stamp_ns)
        draw.noise.frombytes(np.ascontiguousarray(drawn, np.float32).tobytes())
        self._draws.publish(draw)
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
        if message.source != self._local_source or not message.rows or self._policy is None:
            return
        rows = np.array(message.values).reshape(message.rows, -1)
        self._policy.deliver(to_ns(message.header.stamp), rows, policy_timing={
            f"{timing.stage}_ms": 1e-6 * to_ns(timing.duration) for timing in message.timings})

    def _on_drawn(self, message: ActionDraw) -> None:
        with self._heard:
            self._drawn.append(to_ns(message.header.stamp))
            self._heard.notify_all()

    def _on_status(self, message: PolicyStatus) -> None:
        with self._heard:
            self._stages[message.stage] = message
            self._heard.notify_all()
        if (message.stage == "vision_encoder" and "shows nothing" in message.text
                and self._policy is not None):
            self._policy.refuse(message.text)


class _Policy(GraphPolicy):
    """One sentence at a time, and what clients draw with is drawn with, or they are told."""

    def __init__(self, server: GraphServer, **options: Any) -> None:
        super().__init__(**options)
        self._graph = server

    def infer(self, request: ServedRequest) -> ServedReply:
        self._graph.prepare(request)
        reply = super().infer(request)
        if not self.takes:
            return reply
        if not self._graph.was_drawn(self.last_stamp_ns):
            raise RuntimeError(
                "the action head did not take seed, noise or steps: an action head of omni_ros "
                f"does, and says so on {USED}")
        seed = {} if request.noise is not None else {"seed": request.seed}
        return ServedReply(reply.actions, {**reply.extra, **seed})
