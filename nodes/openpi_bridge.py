# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Between the robot and a policy that computes elsewhere, in OpenPI's protocol.

It offers the remote's chunks beside the local policy's, under a name of their own, and says on
`preferred_source` whose may take over. Nothing of the local policy goes through it: a bridge that
dies, hangs or has no link takes away its own chunks and nothing else.
"""

from __future__ import annotations

import dataclasses
import itertools
import traceback
from functools import partial
from pathlib import Path
from typing import Any, Callable

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import String
from std_srvs.srv import SetBool

from omni_ros.msg import ActionChunk, ChunkDifference, Heartbeat
from omni_ros.nodes._bridge_chunks import ChunkMaker
from omni_ros.nodes._bridge_heart import Heart
from omni_ros.nodes._bridge_modes import MODES, OFF, Work
from omni_ros.nodes._bridge_senses import Senses
from omni_ros.nodes._bridge_server import GraphServer
from omni_ros.nodes._bridge_status import BridgeReport, Snapshot
from omni_ros.nodes._runtime import Transitions, logged, run
from omni_ros.nodes._stage_thread import StageThread
from omni_ros.nodes._stage_wait import TimedSubscription, Waiter
from omni_ros.nodes._support import (
    CHUNK_QOS,
    COMMAND_QOS,
    LATCHED_QOS,
    describe,
    load_robot_parameter,
)
from omni_ros.openpi.agreement import objection
from omni_ros.openpi.client import RemotePolicy
from omni_ros.openpi.connection import LinkError
from omni_ros.openpi.mapping import RemoteMapping, load_mapping
from omni_ros.openpi.observe import RobotView
from omni_ros.openpi.settings import RemoteSettings
from omni_ros.robot.files import config_folder
from omni_ros.robot.policy_config import require_policy
from omni_ros.stages.gate import read_sentence

#: Longest wait for the bridge's thread at deactivation, seconds: to end a link takes up to 3.
END_TIMEOUT_S = 10.0
#: Longest wait at configure for what a server says about itself, seconds.
HEARING_S = 2.0


class OpenpiBridge(Transitions, LifecycleNode):
    """Reads cameras, joints, `instruction` and `action_chunk`; offers chunks and compares them."""

    def __init__(self) -> None:
        super().__init__("openpi_bridge")
        declare = self.declare_parameter
        declare("robot", "tabletop", describe("robot YAML: a path, or a name in config/robots"))
        # Any type: what YAML makes of a bare `off` is false.
        declare("mode", "off", ParameterDescriptor(dynamic_typing=True, description=(
            "off: no connection; parity: both policies answer the same observations, nothing is "
            "offered; replan: the remote's chunks may take over. May be set at any time")))
        declare("mapping", "omni_serve", describe(
            "YAML of the remote policy: a path, or a name in config/openpi"))
        declare("openpi", "", describe(
            "ws:// or wss:// of the server, in place of remote.url of the mapping"))
        declare("instruction", "", describe(
            "sentence to begin with; what comes on the topic replaces it"))
        declare("local_source", "local", describe("name that the local policy gives its chunks"))
        declare("compressed", False, describe(
            "take sensor_msgs/CompressedImage from TOPIC/compressed instead of raw pictures"))
        declare("serve", False, describe(
            "let clients drive the policy of this graph, in place of cameras and joints"))
        declare("bundle", "tabletop", describe("with serve: the bundle that the stages have"))
        declare("serve_host", "127.0.0.1", describe("with serve: address to listen on"))
        declare("serve_port", 8000, describe("with serve: port; 0 takes a free one"))
        declare("serve_token_file", "", describe("with serve: file with the token clients send"))
        self.demanded = False
        self.numbers = itertools.count(1)  # of chunks: rise as long as the process lives
        self.waiter = Waiter(self)
        self.remote: RemotePolicy | None = None
        self.work: Work | None = None
        self._server: GraphServer | None = None
        self._thread: StageThread | None = None
        self._teardown: list[Callable[[], Any]] = []
        self._heart = Heart(self)
        self._report = BridgeReport(self)
        self.add_on_set_parameters_callback(self._check)

    def _check(self, parameters) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == "mode" and (parameter.value or OFF) not in MODES:
                return SetParametersResult(successful=False, reason=(
                    f"mode is {parameter.value!r}; expected one of {', '.join(MODES)}"))
        self.waiter.wake()
        return SetParametersResult(successful=True)

    # -- lifecycle -----------------------------------------------------------------------------

    @logged
    def on_configure(self, state):
        try:
            self._configure()
        except BaseException:
            self._free()
            raise
        self._report.look(now=True)

    def _configure(self) -> None:
        get = self.get_parameter
        if self.mode not in MODES:
            raise ValueError(f"mode is {self.mode!r}; expected one of {', '.join(MODES)}")
        self.robot = load_robot_parameter(get("robot").value)
        self.policy = require_policy(self.robot)
        path = mapping_file(get("mapping").value)
        self.mapping = load_mapping(path)
        settings = remote_settings(self.mapping, get("openpi").value, path)
        try:
            view = RobotView(self.mapping, self.robot.joints, list(self.robot.cameras))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        parts = settings.parts
        port = parts.port or {"wss": 443}.get(parts.scheme, 80)
        self.source = f"openpi:{parts.hostname}:{port}"
        self.local_source = get("local_source").value
        self.maker = ChunkMaker(self.robot, self.policy, view, self.source)
        self.remote = RemotePolicy(
            settings, expect=self.mapping.expectation,
            check_metadata=partial(objection, self.mapping), on_event=self.waiter.wake)
        self._teardown.append(self._drop_remote)
        if get("serve").value:
            self._server = GraphServer(self)
            self._teardown.append(self._drop_server)
        self.senses = self._keep(Senses(self, self.robot, self.policy, view,
                                        compressed=get("compressed").value))
        self.senses.sentence = read_sentence(get("instruction").value)
        self.heard = self._keep(TimedSubscription(self, ActionChunk, "action_chunk", CHUNK_QOS))
        self._report.connections.subscriptions = (self.heard, *self.senses.watched())
        self.chunks = self._publisher(ActionChunk, "action_chunk", CHUNK_QOS)
        self.beats = self._publisher(Heartbeat, "heartbeat", COMMAND_QOS)
        self.preferences = self._publisher(String, "preferred_source", LATCHED_QOS)
        self.differences = self._publisher(ChunkDifference, "~/difference", CHUNK_QOS)
        demand = self.create_service(SetBool, "~/demand", self._serve_demand)
        self._teardown.append(partial(self.destroy_service, demand))
        self._thread = StageThread("openpi_bridge")
        self.work = Work(self)
        self._hear_metadata()
        self.get_logger().info(f"remote policy {settings.url}, mapping {path}")

    def _hear_metadata(self) -> None:
        """Refuse to configure for a server that says it is another policy's; a link that is down is
        no reason to."""
        if self.mode == OFF:
            return
        self.remote.start()
        try:
            self.remote.wait_connected(HEARING_S)
        except LinkError as error:
            if error.reason.code == "mapping":
                raise ValueError(error.reason.text) from error
            self.get_logger().warning(f"the remote policy is not there: {error.reason.text}")

    @logged
    def on_activate(self, state):
        if self._server is not None:
            self._server.start()
        self.work.begin()
        self._thread.begin(self.work.step, self._failed)
        self._heart.start(self.source, self.beats)
        self._report.look(now=True)

    def _tell_state(self) -> None:
        self._report.look(now=True)

    def _end(self) -> None:
        self._heart.stop()
        if self._server is not None:
            self._server.stop()
        if self._thread is not None and not self._thread.end(self.waiter.wake, END_TIMEOUT_S):
            self.exit_status = 1
            self.stop_requested.set()
            raise RuntimeError(
                f"the bridge did not end within {END_TIMEOUT_S:g} s; ending the process")
        if self.work is not None:
            self.work.end()

    def _free(self) -> None:
        """Undo what configure made, as far as it got."""
        self._report.connections.subscriptions = ()
        if self._thread is not None:
            self._thread.close()
            self._thread = None
        while self._teardown:
            self._teardown.pop()()
        self.work = None

    def _drop_remote(self) -> None:
        remote, self.remote = self.remote, None
        remote.stop()

    def _drop_server(self) -> None:
        server, self._server = self._server, None
        server.close()

    def _failed(self) -> None:
        """The bridge's thread ended by an exception: a process that stands still would be worse."""
        self.get_logger().fatal(f"the bridge stops, ending the process:\n{traceback.format_exc()}")
        self.exit_status = 1
        self.stop_requested.set()

    def _keep(self, entity: Any) -> Any:
        self._teardown.append(entity.destroy)
        return entity

    def _publisher(self, kind, topic: str, qos) -> Any:
        publisher = self.create_publisher(kind, topic, qos)
        self._teardown.append(partial(self.destroy_publisher, publisher))
        return publisher

    # -- the executor's thread -----------------------------------------------------------------

    def _serve_demand(self, request, response):
        """For replan.use: on_demand."""
        self.demanded = request.data
        self.waiter.wake()
        response.success = True
        response.message = "the remote is asked for" if request.data else "no longer asked for"
        return response

    @property
    def mode(self) -> str:
        """Return the mode that is asked for."""
        return self.get_parameter("mode").value or OFF

    def snapshot(self) -> Snapshot:
        """Return what there is to report."""
        work, server = self.work, self._server
        return Snapshot(
            link=self.remote.status() if self.remote is not None else None,
            work=work.report if work is not None else None,
            serving=server.url if server is not None else "",
            clients=server.counters() if server is not None else {})


def mapping_file(value: str) -> Path:
    """Return the file named by the parameter `mapping`: a path, or a name in config/openpi."""
    if "/" in value or value.endswith((".yaml", ".yml")):
        return Path(value).expanduser()
    folder = config_folder()
    files = [] if folder is None else sorted(folder.glob("openpi/*.yaml"))
    for path in files:
        if path.stem == value:
            return path
    known = ", ".join(path.stem for path in files) or "none"
    raise ValueError(f"mapping is {value!r}; expected a path, or one of {known}")


def remote_settings(mapping: RemoteMapping, url: str, path: Path) -> RemoteSettings:
    """Return how the remote is reached. :raises ValueError: nobody says where it is."""
    if not url:
        if mapping.remote is None:
            raise ValueError(f"{path} has no remote.url; write it, or set openpi:=ws://HOST:PORT")
        return mapping.remote
    if mapping.remote is None:
        return RemoteSettings(url)
    return dataclasses.replace(mapping.remote, url=url)


def main(argv: list | None = None) -> int:
    return run(OpenpiBridge, argv)
