# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Real nodes over real DDS: processes, an observer in the test's own process, and waiting."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROBOTS = ROOT / "config" / "robots"
#: Generous: a loaded two-core machine starts Python, ROS and discovery in a few seconds.
PATIENCE_S = 30.0


def pytest_collection_modifyitems(items):
    for item in items:
        if "graph" in Path(str(item.fspath)).parts:
            item.add_marker(pytest.mark.graph)
            # Processes, discovery and a machine that others share: one more try, which the summary
            # shows. A test that needs it twice in a row is broken, or has found something.
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=2))


@pytest.fixture(scope="session", autouse=True)
def runtime_folder(tmp_path_factory):
    """Where trips are kept: apart from those of a robot on this machine."""
    folder = tmp_path_factory.mktemp("runtime")
    os.environ["OMNI_ROS_STATE"] = str(folder)
    return folder


@pytest.fixture(autouse=True)
def no_trip_of_another_test(runtime_folder):
    """A trip outlives its player's process until it is reset; not so between tests."""
    yield
    # Afterwards: what serves a whole module is set up before anything of a single test.
    for file in runtime_folder.glob("trip-*"):
        file.unlink()


@pytest.fixture(scope="session", autouse=True)
def ros_domain():
    """A domain of this test run's own, on this machine only."""
    with contextlib.ExitStack() as held:
        domain = next(
            domain for domain in (10 + (os.getpid() + step) % 90 for step in range(90))
            if _reserve(domain, held))
        os.environ["ROS_DOMAIN_ID"] = str(domain)
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        yield domain


def _reserve(domain: int, held: contextlib.ExitStack) -> bool:
    """Whether no other test run on this machine has the domain; it is then ours until the end."""
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(f"\0omni_ros_tests/domain_{domain}")
    except OSError:
        lock.close()
        return False
    held.callback(lock.close)
    return True


def eventually(condition: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> Any:
    """Wait until `condition()` is true and return its value; fail naming `what` after a time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"waited {timeout_s:g} s for: {what}")


class Process:
    """A node's process and what it printed."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name = name
        self._log = folder / f"{name}_{len(list(folder.iterdir()))}.log"
        self._sink = self._log.open("w")
        self.popen = subprocess.Popen(
            command, stdout=self._sink, stderr=subprocess.STDOUT, start_new_session=True)

    @property
    def output(self) -> str:
        return self._log.read_text()

    def send(self, number: int) -> None:
        self.popen.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer does."""
        self.popen.kill()
        self.popen.wait(timeout=PATIENCE_S)

    def end(self, number: int = signal.SIGINT, timeout_s: float = PATIENCE_S) -> int:
        """Signal and wait; return the exit status."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        return self.popen.wait(timeout=timeout_s)

    def close(self) -> None:
        if self.popen.poll() is None:
            # As a terminal does it: `ros2 launch` waits 5 s for nodes that were not interrupted too.
            os.killpg(self.popen.pid, signal.SIGINT)
            try:
                self.popen.wait(timeout=8)
            except subprocess.TimeoutExpired:
                os.killpg(self.popen.pid, signal.SIGKILL)
                self.popen.wait(timeout=PATIENCE_S)
        self._sink.close()


class Recorder(list):
    """Messages of one topic as (monotonic seconds at receipt, message)."""

    def __init__(self) -> None:
        super().__init__()
        self.qos_events: list = []

    @property
    def messages(self) -> list:
        return [message for _, message in self]

    @property
    def last(self):
        return self[-1][1] if self else None

    def since(self, moment: float) -> list:
        return [(at, message) for at, message in list(self) if at >= moment]


class Graph:
    """What a test needs of ROS: start nodes, publish, record, call services."""

    def __init__(self, folder: Path) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        self.folder = folder
        self.processes: list[Process] = []
        self._clients: dict[str, Any] = {}
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("test_observer", context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._executor.spin, daemon=True)
        self._thread.start()

    # -- processes ----------------------------------------------------------------------------

    def start(self, executable: str | Path, *, name: str | None = None, remap: dict | None = None,
              params_file: Path | None = None, **parameters: Any) -> Process:
        """Start a node of the package, or a Python file; keyword arguments are its parameters."""
        prefix = Path(os.environ["AMENT_PREFIX_PATH"].split(":")[0])
        program = [str(prefix / "lib" / "omni_ros" / executable)]
        if isinstance(executable, Path):
            program = [sys.executable, "-P", str(executable)]
            name = name or executable.stem
        name = name or executable
        command = [*program, "--ros-args", "-r", f"__node:={name}"]
        for key, value in parameters.items():
            command += ["-p", f"{key}:={_yaml_value(value)}"]
        for old, new in (remap or {}).items():
            command += ["-r", f"{old}:={new}"]
        if params_file:
            command += ["--params-file", str(params_file)]
        process = Process(name, command, self.folder)
        self.processes.append(process)
        return process

    def bring_up(self, name: str, *, to: str = "active") -> None:
        """Configure, and activate unless `to` is "inactive", a lifecycle node."""
        steps = ["configure"] if to == "inactive" else ["configure", "activate"]
        for step in steps:
            assert self.change_state(name, step), f"{name} could not {step}: {self.logs()}"

    def state(self, name: str) -> str:
        """Label of a lifecycle node's state, asked anew until it answers."""
        from lifecycle_msgs.srv import GetState

        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            answer = self._ask(GetState, f"{name}/get_state", GetState.Request(), 3.0)
            if answer is not None:
                return answer.current_state.label
        pytest.fail(f"{name} does not tell its state\n{self.logs()}")

    def change_state(self, name: str, step: str) -> bool:
        """Ask for a transition; whether it led to its goal.

        An answer can be lost while the two ends are still finding each other, so what counts is the
        state afterwards.
        """
        from lifecycle_msgs.srv import ChangeState

        identity, goal = {"configure": (1, "inactive"), "cleanup": (2, "unconfigured"),
                          "activate": (3, "active"), "deactivate": (4, "inactive")}[step]
        self.state(name)
        request = ChangeState.Request()
        request.transition.id = identity
        answer = self._ask(ChangeState, f"{name}/change_state", request, 10.0)
        return answer.success if answer is not None else self.state(name) == goal

    def logs(self) -> str:
        return "\n".join(f"--- {p.name}\n{p.output[-3000:]}" for p in self.processes)

    # -- topics and services --------------------------------------------------------------------

    def record(self, message_type: Any, topic: str, qos: Any = 50) -> Recorder:
        recorder = Recorder()
        self.node.create_subscription(
            message_type, topic, lambda message: recorder.append((time.monotonic(), message)), qos)
        return recorder

    def publisher(self, message_type: Any, topic: str, qos: Any = 10, *, wait: bool = True):
        publisher = self.node.create_publisher(message_type, topic, qos)
        if wait:
            eventually(publisher.get_subscription_count, f"a subscriber of {topic}")
        return publisher

    def call(self, service_type: Any, name: str, request: Any = None,
             timeout_s: float = PATIENCE_S) -> Any:
        answer = self._ask(service_type, name, request or service_type.Request(), timeout_s)
        if answer is None:
            pytest.fail(f"no answer of {name}\n{self.logs()}")
        return answer

    def _ask(self, service_type: Any, name: str, request: Any, timeout_s: float) -> Any:
        """One request; None if there is no service or no answer in time."""
        if name not in self._clients:
            self._clients[name] = self.node.create_client(service_type, name)
        client = self._clients[name]
        if not client.wait_for_service(timeout_sec=PATIENCE_S):
            return None
        future = client.call_async(request)
        deadline = time.monotonic() + timeout_s
        while not future.done() and time.monotonic() < deadline:
            time.sleep(0.005)
        return future.result() if future.done() else None

    def close(self) -> None:
        import rclpy

        for process in reversed(self.processes):
            process.close()
        self._executor.shutdown()
        self._thread.join(timeout=5)
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


def _yaml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return yaml.safe_dump(value, default_flow_style=True).strip().removesuffix("...").strip()


@pytest.fixture
def graph(tmp_path):
    """A graph of the test's own: everything started in it ends with the test."""
    folder = tmp_path / "logs"
    folder.mkdir()
    graph = Graph(folder)
    yield graph
    graph.close()


@pytest.fixture(scope="module")
def module_graph(tmp_path_factory):
    """A graph that the tests of one file share; what is started in it ends with the file."""
    graph = Graph(tmp_path_factory.mktemp("logs"))
    yield graph
    graph.close()


@pytest.fixture
def robot_file(tmp_path):
    """Write a robot YAML: the default one, with settings of `player` or of every joint changed."""
    return robot_writer(tmp_path)


def robot_writer(folder: Path) -> Callable[..., str]:
    """Return what `robot_file` returns, writing to a folder."""

    def write(name: str = "tabletop", *, joints: dict | None = None, edit: Callable | None = None,
              **player: Any) -> str:
        content = yaml.safe_load((ROBOTS / f"{name}.yaml").read_text())
        content["player"].update(player)
        for joint in content["joints"]:
            joint.update(joints or {})
        if edit:
            edit(content)
        path = folder / f"robot_{re.sub('[^0-9]', '', str(time.monotonic()))}.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return str(path)

    return write


@pytest.fixture(scope="session")
def tools():
    """Free functions and classes for tests, without an import path of their own."""
    return SimpleNamespace(eventually=eventually, Graph=Graph, Process=Process,
                           robot_writer=robot_writer)
