# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The bridge with a remote policy that does what a test says, behind a wire that can be cut."""

from __future__ import annotations

import select
import socket
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from omni_ros.msg import ActionChunk, BridgeStatus, PlayerStatus  # noqa: E402
from omni_ros.nodes._support import (  # noqa: E402
    CHUNK_QOS,
    LATCHED_QOS,
    load_robot_parameter,
)

if find_spec("websockets") is None or find_spec("msgpack") is None or find_spec("mujoco") is None:
    collect_ignore_glob = ["test_*.py"]

ROBOT = load_robot_parameter("tabletop")
MAPPING = Path(__file__).parents[3] / "config" / "openpi" / "omni_serve.yaml"
ROWS = 16


class RemoteArm:
    """A served policy: waves a joint. A test sets how long it takes, and what is wrong with it."""

    cameras, state_names, takes = ("front", "wrist"), tuple(ROBOT.policy_names), ()
    metadata = {"policy": "wave"}

    def __init__(self) -> None:
        self.delay_s, self.first_s, self.shift = 0.0, 0.0, 0.0
        self.asked: list[str] = []

    def infer(self, request: Any) -> Any:
        from omni_ros.openpi.serving import ServedReply

        time.sleep(self.delay_s if self.asked else max(self.first_s, self.delay_s))
        self.asked.append(request.prompt)
        rows = np.tile(ROBOT.to_policy(ROBOT.home), (ROWS, 1))
        rows[:, 0] += 0.4 * np.sin(2.0 * (time.monotonic() + np.arange(ROWS) / 15.0)) + self.shift
        return ServedReply(rows.astype(np.float32))

    def reset(self, session: str) -> None:
        """Nothing is kept."""


class Wire:
    """A TCP proxy. `stalled`: both ends stay connected, and nothing gets through."""

    def __init__(self, port: int) -> None:
        self._target, self.stalled, self._closed = port, False, False
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        while self.stalled and not self._closed:
            time.sleep(0.01)  # half-open for whoever comes now, too
        try:
            far = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            near.close()
            return
        with near, far:
            while not self._closed:
                if self.stalled:
                    time.sleep(0.01)
                    continue
                ready, _, _ = select.select([near, far], [], [], 0.02)
                for end in ready:
                    try:
                        data = end.recv(65536)
                        if not data:
                            return
                        (far if end is near else near).sendall(data)
                    except OSError:
                        return

    def close(self) -> None:
        self._closed = True
        self._server.close()


class Bridged:
    """World, player and bridge, and what they say."""

    def __init__(self, graph, tools, folder: Path, url: str, *, local: bool = False,
                 mode: str = "replan", simulated: bool = False, **sections: dict) -> None:
        self.graph, self.eventually = graph, tools.eventually
        self.bridge = graph.record(BridgeStatus, "bridge_status", LATCHED_QOS)
        self.player = graph.record(PlayerStatus, "action_player/status", LATCHED_QOS)
        self.chunks = graph.record(ActionChunk, "action_chunk", CHUNK_QOS)
        self.joints = graph.record(JointState, "joint_states", 100)
        clock = {"use_sim_time": True} if simulated else {}
        graph.start("world", image_rate=10.0, publish_clock=simulated)
        graph.start("action_player", **clock)
        names = ["world", "action_player"]
        if local:
            graph.start("scripted_policy", path="wave", **clock)
            names.append("scripted_policy")
        graph.start("openpi_bridge", mode=mode, openpi=url, local_source="scripted",
                    mapping=write_mapping(folder, **sections), **clock)
        for name in [*names, "openpi_bridge"]:
            graph.bring_up(name)
        self._sentences = graph.publisher(String, "instruction", LATCHED_QOS)
        self._sentences.publish(String(data="wave"))

    def set(self, value: Any) -> bool:
        """Set the mode while it runs."""
        from rcl_interfaces.srv import SetParameters
        from rclpy.parameter import Parameter

        request = SetParameters.Request(
            parameters=[Parameter("mode", value=value).to_parameter_msg()])
        answer = self.graph.call(SetParameters, "openpi_bridge/set_parameters", request)
        return answer.results[0].successful

    def until(self, recorder: Any, condition: Callable[[Any], Any], what: str,
              moment: float | None = None) -> Any:
        """Wait until a status since a moment, or from now, fits."""
        moment = time.monotonic() if moment is None else moment

        def found() -> Any:
            return next((m for _, m in recorder.since(moment) if condition(m)), None)

        return self.eventually(found, f"{what}\n{self.graph.logs()}")

    def until_remote_plays(self) -> None:
        self.until(self.player, lambda s: s.source.startswith("openpi:") and s.state in (
            PlayerStatus.STATE_PLAYING, PlayerStatus.STATE_RAMPING_IN), "the remote's chunks play")

    def until_stopped(self, moment: float) -> PlayerStatus:
        return self.until(self.player, lambda s: s.state == PlayerStatus.STATE_STALE
                          and not any(s.command_velocity), "STALE and at rest", moment)

    def stops(self, moment: float) -> list[str]:
        """Stops since a moment, but for those of a machine too busy to pass joint states on, or to
        let the player tick."""
        busy = {PlayerStatus.REASON_JOINT_STATE_STALE, PlayerStatus.REASON_CLOCK_JUMP}
        return [m.text for _, m in self.player.since(moment)
                if m.state == PlayerStatus.STATE_STALE and not busy & set(m.reasons)]

    def count(self, name: str) -> int:
        status = self.bridge.last
        return dict(zip(status.counter_names, status.counters)).get(name, 0)


def write_mapping(folder: Path, **sections: dict) -> str:
    """Write the mapping of `omni serve`, with settings of its sections changed."""
    content = yaml.safe_load(MAPPING.read_text())
    content["remote"].update(backoff_s=0.05, backoff_max_s=0.2)
    content["replan"].update(use="always", every_s=0.2)
    for name, settings in sections.items():
        content[name].update(settings)
    path = folder / f"mapping_{time.monotonic_ns()}.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return str(path)


class Remote:
    """A server of `RemoteArm` behind a wire; it may be stopped, and begun anew on its port."""

    def __init__(self) -> None:
        self.policy = RemoteArm()
        self._server: Any = None
        self.start()
        self.wire = Wire(self._port)
        self.url = f"ws://127.0.0.1:{self.wire.port}/"

    def start(self, port: int = 0) -> None:
        from omni_ros.openpi.server import PolicyServer
        from omni_ros.openpi.server_settings import ServerSettings

        self._server = PolicyServer(self.policy, ServerSettings(port=port))
        self._server.start()
        self._port = int(self._server.url.rstrip("/").rsplit(":", 1)[1])

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def restart(self) -> None:
        self.start(self._port)

    def close(self) -> None:
        self.wire.close()
        self.stop()


@pytest.fixture
def remote():
    remote = Remote()
    yield remote
    remote.close()


@pytest.fixture
def bridged(graph, tools, tmp_path) -> Callable[..., Bridged]:
    """Start world, player and bridge; keyword arguments as of `Bridged`."""
    return lambda url, **options: Bridged(graph, tools, tmp_path, url, **options)


@pytest.fixture(scope="session")
def openpi_tools():
    """Free functions and classes for tests, without an import path of their own."""
    return SimpleNamespace(Remote=Remote, Bridged=Bridged, write_mapping=write_mapping, robot=ROBOT)
