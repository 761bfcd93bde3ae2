# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The action player over DDS, with its surroundings in the hands of the test.

The test's own process is the arm (joint states that follow the commands) and the source (chunks and
heartbeats), unless a test is about another node. One player process serves a file; each test writes
its own robot YAML and configures it anew, so that every counter starts at zero.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from omni_ros.msg import ActionChunk, Heartbeat, PlayerStatus  # noqa: E402
from omni_ros.nodes._support import (  # noqa: E402
    CHUNK_QOS,
    duration_message,
    pid_scope,
    time_message,
)
from omni_ros.player.reasons import State  # noqa: E402
from omni_ros.robot import load_robot  # noqa: E402

#: Deep enough that an observer which is kept waiting for seconds loses nothing.
DEEP = QoSProfile(depth=2000)
#: As DEEP, and the last message from before the subscription.
DEEP_LATCHED = QoSProfile(depth=2000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
#: The test's process is the arm and the source, and may be kept waiting by a busy machine.
PATIENT = {"joint_state_timeout_s": 1.0, "heartbeat_timeout_s": 1.5}
#: Float arithmetic in messages and differences of differences.
ROUNDING = 1e-7


class Wire(list):
    """Messages of a topic with the instant (ns, system time) at which each was sent.

    The sender's time, because that of receipt is the observer's own tardiness.
    """

    def __init__(self, graph, kind, topic: str, qos: QoSProfile = DEEP) -> None:
        super().__init__()
        self._node = graph.node
        self.subscription = graph.node.create_subscription(kind, topic, self._take, qos)

    def _take(self, message, info) -> None:
        self.append((info["source_timestamp"], message))

    @property
    def messages(self) -> list:
        return [message for _, message in list(self)]

    @property
    def last(self):
        return self[-1][1] if self else None

    def after(self, moment_ns: int) -> list:
        """Messages sent after an instant of the system's time."""
        return [message for at, message in list(self) if at > moment_ns]

    def close(self) -> None:
        self._node.destroy_subscription(self.subscription)


class Arm:
    """Joint states at 100 Hz of an arm that is always where it was told to be."""

    def __init__(self, rig, position=None, names=None) -> None:
        self.names = list(names or rig.robot.joint_names)
        self.position = np.array(rig.robot.home if position is None else position, dtype=float)
        self.follows = True
        self.silent = False
        self._rig = rig
        self._seen = len(rig.commands)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            self._obey()
            if self.silent:
                continue
            message = JointState(name=self.names, position=self.position.tolist())
            message.header.stamp = time_message(self._rig.now_ns)
            self._rig.joint_states.publish(message)

    def _obey(self) -> None:
        commands = self._rig.commands
        fresh, self._seen = commands.messages[self._seen:], len(commands)
        if not self.follows or len(self.position) != len(self._rig.robot.joints):
            return
        for message in fresh:
            if self._rig.output == "forward_velocity":
                self.position = self.position + np.array(message.data) * self._rig.period_s
            else:
                self.position = self._rig.first(message)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)


class Source:
    """A source of chunks; it beats from when it is made, under a process id that can be lent."""

    def __init__(self, rig, name: str, *, pid: int | None = None, scope: str | None = None,
                 beats: bool = True) -> None:
        self.name, self._rig = name, rig
        self.pid, self.scope = pid or os.getpid(), pid_scope() if scope is None else scope
        self.chunk_id = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        if beats:
            self._thread.start()
            rig.settle(3)  # a beat has come before the first chunk

    def _beat(self) -> None:
        beat = Heartbeat(source=self.name, pid=self.pid, pid_scope=self.scope)
        while not self._stop.is_set():
            beat.header.stamp = time_message(self._rig.now_ns)
            beat.sequence += 1
            self._rig.beats.publish(beat)
            self._stop.wait(0.05)

    def message(self, rows, *, age_s: float = 0.02, dt_s: float = 1 / 30, life_s: float = 2.0,
                mode: int = ActionChunk.CONTROL_POSITION, **fields) -> ActionChunk:
        """A chunk of rows (k, n), topic joint order, policy units; `fields` replace its own."""
        rows = np.atleast_2d(np.asarray(rows, dtype=float))
        self.chunk_id += 1
        chunk = ActionChunk(
            control_mode=mode, joint_names=self._rig.robot.joint_names,
            joint_units=self._rig.robot.policy_units, dt=duration_message(round(dt_s * 1e9)),
            life=duration_message(round(life_s * 1e9)), rows=len(rows),
            values=array("d", rows.tobytes()), chunk_id=self.chunk_id,
            observation_seq=self.chunk_id, source=self.name)
        chunk.header.stamp = time_message(self._rig.now_ns - round(age_s * 1e9))
        for field, value in fields.items():
            setattr(chunk, field, value)
        return chunk

    def send(self, rows, **fields) -> ActionChunk:
        message = self.message(rows, **fields)
        self._rig.chunks.publish(message)
        return message

    def close(self) -> None:
        self._stop.set()
        if self._thread.ident:
            self._thread.join(timeout=5)


class Rig:
    """A configured, active player and everything around it."""

    def __init__(self, graph, process, path: str, eventually, prefix: str = "") -> None:
        self.graph, self.process, self.eventually = graph, process, eventually
        self.prefix, self.path = prefix, path
        self.name = f"{prefix}action_player"
        self.robot = load_robot(path)
        self.output = self.robot.player.output
        self.period_s = self.robot.player.period_ns * 1e-9
        kind = JointTrajectory if self.output == "joint_trajectory" else Float64MultiArray
        self.commands = Wire(graph, kind, prefix + self.robot.command_topic)
        self.statuses = Wire(graph, PlayerStatus, f"{self.name}/status", DEEP_LATCHED)
        self._closing: list = [self.commands, self.statuses]
        self._publishers = []
        self.arm: Arm | None = None

    def configure(self) -> None:
        assert self.graph.change_state(self.name, "configure"), self.process.output
        publisher = self.graph.node.create_publisher
        self.joint_states = publisher(JointState, self.prefix + "joint_states", 10)
        self.chunks = publisher(ActionChunk, self.prefix + "action_chunk", CHUNK_QOS)
        self.beats = publisher(Heartbeat, self.prefix + "heartbeat", CHUNK_QOS)
        self._publishers = [self.joint_states, self.chunks, self.beats]
        self.eventually(
            lambda: all(p.get_subscription_count() for p in self._publishers), "subscriptions")
        self.eventually(lambda: self.commands.subscription.get_publisher_count(), "a publisher")

    def activate(self, *, arm: bool = True, world: bool = False) -> None:
        """Start the arm, unless another node is it, and the player, and wait until it holds."""
        if arm and not world:
            self.arm = self.make_arm()
        assert self.graph.change_state(self.name, "activate"), self.process.output
        if arm or world:
            self.until(State.HOLDING)

    # -- what there is --------------------------------------------------------------------------

    @property
    def now_ns(self) -> int:
        return self.graph.node.get_clock().now().nanoseconds

    @property
    def status(self) -> PlayerStatus:
        """The next status from now."""
        count = len(self.statuses)
        self.eventually(lambda: len(self.statuses) > count, "a status")
        return self.statuses.last

    def make_arm(self, *args, **kwargs) -> Arm:
        arm = Arm(self, *args, **kwargs)
        self._closing.append(arm)
        return arm

    def make_source(self, name: str = "test", **kwargs) -> Source:
        source = Source(self, name, **kwargs)
        self._closing.append(source)
        return source

    def first(self, message) -> np.ndarray:
        """What a command asks for one period after it."""
        if self.output == "joint_trajectory":
            return np.array(message.points[0].positions)
        return np.array(message.data)

    def path_of(self, messages) -> np.ndarray:
        """Commands as rows (messages, n)."""
        return np.array([self.first(message) for message in messages])

    # -- what happens ---------------------------------------------------------------------------

    def until(self, state: State, what: str = "") -> PlayerStatus:
        return self.eventually(
            lambda: self.statuses and self.statuses.last.state == state and self.statuses.last,
            f"state {state.name} {what}, last is "
            f"{State(self.statuses.last.state).name if self.statuses else None}")

    def settle(self, ticks: int = 5) -> None:
        """Wait until the player has ticked that often."""
        before = self.status.ticks
        self.eventually(lambda: self.statuses.last.ticks >= before + ticks, f"{ticks} ticks")

    def moving(self, speed: float = 0.1) -> None:
        """Wait until the command moves."""
        self.eventually(
            lambda: np.abs(self.statuses.last.command_velocity).max(initial=0.0) > speed, "motion")

    def at_rest(self) -> None:
        """Wait until the command stands, for good as far as can be seen."""
        self.eventually(lambda: not np.any(self.statuses.last.command_velocity), "rest")
        self.settle(2)

    def trigger(self, service: str) -> Trigger.Response:
        return self.graph.call(Trigger, f"/{self.name.lstrip('/')}/{service}")

    def assert_within_limits(self, messages=None, start: np.ndarray | None = None) -> None:
        check_limits(self, self.commands.messages if messages is None else messages, start)

    def close(self) -> None:
        for thing in reversed(self._closing):
            thing.close()
        for publisher in self._publishers:
            self.graph.node.destroy_publisher(publisher)


def check_limits(rig, messages, start=None) -> None:
    """Assert that finite differences of commands stay within position, v, a and jerk limits.

    A trajectory controller goes on along the last message while ticks are missed, so a message may
    follow any of the points of the one before. What was missed is in the player's own count.
    """
    robot, period = rig.robot, rig.period_s
    inside = (robot.lower + robot.margin - ROUNDING, robot.upper - robot.margin + ROUNDING)
    limits = [robot.velocity, robot.acceleration, robot.jerk]

    def within(points) -> bool:
        differences = np.asarray(points)[-4:]
        if ((differences[-1] < inside[0]) | (differences[-1] > inside[1])).any():
            return False
        for order, limit in enumerate(limits[: len(differences) - 1], start=1):
            differences = np.diff(differences, axis=0) / period
            if (np.abs(differences[-1]) > limit * (1 + 1e-6) + ROUNDING / period**order).any():
                return False
        return True

    if rig.output == "forward_velocity":
        velocity = rig.path_of(messages)
        for order, limit in enumerate(limits):
            step = np.diff(velocity, n=order, axis=0) / period**order
            assert (np.abs(step) <= limit * (1 + 1e-6) + ROUNDING / period**order).all(), order
        return
    plans = [np.array([p.positions for p in m.points]) if rig.output == "joint_trajectory"
             else np.array([m.data]) for m in messages]
    skips = int(rig.status.ticks_missed)
    rest = plans[0][0] if start is None else np.asarray(start)
    # What may have been followed so far: its end, by the number of points skipped. All of it that
    # fits is kept, as a skip may show only in the differences of later points.
    chains, before = {0: [rest] * 4}, plans[0][:1]
    for number, plan in enumerate(plans):
        fitting: dict = {}
        for skipped, chain in chains.items():
            for more in range(min(len(before), skips - skipped + 1)):
                longer = chain + list(before[1:more + 1])
                if all(within(longer + list(plan[:n])) for n in range(1, len(plan) + 1)):
                    fitting.setdefault(skipped + more, (longer + [plan[0]])[-4:])
        assert fitting, (
            f"command {number} leaves the limits: {plan} after {list(chains.values())} "
            f"and {before}, {skips} ticks missed")
        chains, before = fitting, plan


@pytest.fixture(scope="module")
def robot_path(tmp_path_factory):
    """The robot YAML that the file's player reads whenever it is configured."""
    return tmp_path_factory.mktemp("robot") / "robot.yaml"


@pytest.fixture(scope="module")
def player_process(module_graph, robot_path):
    return module_graph.start("action_player", robot=str(robot_path))


@pytest.fixture
def write_robot(robot_path, robot_file):
    """Write the robot YAML of the file's player; arguments as of `robot_file`."""

    def write(name: str = "tabletop", **kwargs) -> str:
        with open(robot_file(name, **kwargs)) as changed:
            robot_path.write_text(changed.read())
        return str(robot_path)

    return write


@pytest.fixture
def player(module_graph, player_process, write_robot, tools):
    """Return a function that configures and activates the player with a robot's settings."""
    rigs: list[Rig] = []

    def start(robot: str = "tabletop", *, arm: bool = True, world: bool = False, **kwargs) -> Rig:
        path = write_robot(robot, **PATIENT, **kwargs)
        rig = Rig(module_graph, player_process, path, tools.eventually)
        rigs.append(rig)
        rig.configure()
        rig.activate(arm=arm, world=world)
        return rig

    yield start
    for rig in rigs:
        if player_process.popen.poll() is None:
            if module_graph.state(rig.name) == "active":
                module_graph.change_state(rig.name, "deactivate")
            if module_graph.state(rig.name) == "inactive":
                module_graph.change_state(rig.name, "cleanup")
        rig.close()


@pytest.fixture(scope="session")
def kit():
    """What tests of the player need of this file, without an import path of their own."""
    return SimpleNamespace(Rig=Rig, Source=Source, Arm=Arm, Wire=Wire, DEEP=DEEP,
                           JointState=JointState, PATIENT=PATIENT)
