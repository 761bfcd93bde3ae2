# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The player on simulated time: no clock, a clock that stands still, goes back, or runs at a rate."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from builtin_interfaces.msg import Duration, Time  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from omni_ros.msg import ActionChunk, Heartbeat, PlayerStatus  # noqa: E402
from omni_ros.nodes._support import LATCHED_QOS  # noqa: E402
from omni_ros.robot import load_robot  # noqa: E402

COMMAND = "joint_trajectory_controller/joint_trajectory"
#: Machine seconds between two steps of the stand-in.
STEP_S = 0.005
#: A clock as a long-running robot has it, far from the zero that ROS starts from.
START_NS = 1_000_000_000 * 1_000_000_000
STOPPED = (PlayerStatus.STATE_STALE, PlayerStatus.STATE_TRIPPED)


def stamp(ns: int) -> Time:
    return Time(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)


class SimulatedRobot:
    """A perfect arm, its clock and a chunk source, all on simulated time, stepped by one thread."""

    def __init__(self, graph, robot_file: str) -> None:
        self.robot = load_robot(robot_file)
        self.position = self.robot.home.copy()
        self.rate, self.now_ns = 1.0, START_NS
        self.clock = self.chunks = self.joints = False
        self._chunk_id = 0
        self._chunk_due_ns = self._beat_due_ns = 0
        node = graph.node
        self._clock_pub = node.create_publisher(Clock, "/clock", 1)
        self._joint_pub = node.create_publisher(JointState, "joint_states", 5)
        self._beat_pub = node.create_publisher(Heartbeat, "heartbeat", 5)
        self._chunk_pub = node.create_publisher(ActionChunk, "action_chunk", 5)
        self.commands = graph.record(JointTrajectory, COMMAND)
        self.statuses = graph.record(PlayerStatus, "action_player/status", LATCHED_QOS)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "SimulatedRobot":
        self._thread.start()
        return self

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self._step()
            due = max(due + STEP_S, time.monotonic())
            self._stop.wait(due - time.monotonic())

    def _step(self) -> None:
        if self.clock:
            self.now_ns += round(STEP_S * 1e9 * self.rate)
            self._clock_pub.publish(Clock(clock=stamp(self.now_ns)))
        if self.joints:
            if self.commands:
                self.position = np.array(self.commands.last.points[0].positions)
            state = JointState(name=self.robot.joint_names, position=self.position.tolist())
            state.header.stamp = stamp(self.now_ns)
            self._joint_pub.publish(state)
        if self.chunks and self.now_ns >= self._beat_due_ns:
            self._beat_due_ns = self.now_ns + 50_000_000
            beat = Heartbeat(source="test")
            beat.header.stamp = stamp(self.now_ns)
            self._beat_pub.publish(beat)
        if self.chunks and self.now_ns >= self._chunk_due_ns:
            self._chunk_due_ns = self.now_ns + 200_000_000
            self._publish_chunk()

    def _publish_chunk(self) -> None:
        """One second of a slow sine of the first joint, by simulated time."""
        rows = 50
        times = (self.now_ns - START_NS) * 1e-9 + 0.02 * np.arange(1, rows + 1)
        values = np.tile(self.robot.home, (rows, 1))
        values[:, 0] += 0.4 * np.sin(2 * np.pi * times / 4.0)
        self._chunk_id += 1
        chunk = ActionChunk(
            control_mode=ActionChunk.CONTROL_POSITION, joint_names=self.robot.joint_names,
            joint_units=self.robot.policy_units, rows=rows, chunk_id=self._chunk_id,
            observation_seq=self._chunk_id, source="test", dt=Duration(nanosec=20_000_000),
            life=Duration(sec=2), values=self.robot.to_policy(values).ravel().tolist())
        chunk.header.stamp = stamp(self.now_ns)
        self._chunk_pub.publish(chunk)

    def set_back(self, seconds: float) -> None:
        """The clock steps back, as when a bag starts over."""
        self.now_ns -= round(seconds * 1e9)
        self._beat_due_ns = self._chunk_due_ns = 0

    @property
    def state(self) -> int | None:
        return self.statuses.last.state if self.statuses else None

    def pass_time(self, seconds: float) -> None:
        """Wait until that many simulated seconds have gone by."""
        until = self.now_ns + seconds * 1e9
        while self.now_ns < until:
            time.sleep(0.01)

    def path(self, since: float = 0.0) -> np.ndarray:
        """Commanded positions (k, n), in order."""
        return np.array([message.points[0].positions for _, message in self.commands.since(since)])


@pytest.fixture
def sim(graph, robot_file):
    path = robot_file()
    sim = SimulatedRobot(graph, path)
    sim.process = graph.start("action_player", robot=path, use_sim_time=True)
    graph.bring_up("action_player")
    sim.start()
    yield sim
    sim.close()


@pytest.fixture
def playing(sim, tools):
    """A player that follows chunks by simulated time."""
    sim.clock = sim.joints = sim.chunks = True
    tools.eventually(lambda: sim.state == PlayerStatus.STATE_PLAYING, "playing")
    return sim


def largest_step(path: np.ndarray) -> float:
    return float(np.abs(np.diff(path, axis=0)).max()) if len(path) > 1 else 0.0


def step_limit(sim) -> float:
    """The farthest a joint may be told to go from one command to the next."""
    return float(sim.robot.velocity.max()) / sim.robot.player.rate_hz * (1 + 1e-6)


def test_without_a_clock_it_warns_and_commands_nothing(sim, tools):
    sim.joints = sim.chunks = True
    time.sleep(3.0)
    assert not sim.commands
    tools.eventually(lambda: "WARN" in sim.process.output, "a warning in the log")
    assert "/clock" in sim.process.output
    assert PlayerStatus.REASON_NO_CLOCK in sim.statuses.last.reasons


def test_diagnostics_come_although_there_is_no_clock(sim, graph, tools):
    found = graph.record(DiagnosticArray, "/diagnostics")
    tools.eventually(lambda: any(
        "/clock" in status.message for message in found.messages for status in message.status),
        "diagnostics that name /clock")


def test_a_first_clock_far_from_zero_trips_nothing_and_plays(sim, tools):
    sim.joints = sim.chunks = True
    time.sleep(1.0)
    sim.clock = True
    tools.eventually(lambda: sim.state == PlayerStatus.STATE_PLAYING, "playing")
    states = [status.state for status in sim.statuses.messages]
    assert not set(states) & set(STOPPED), states
    assert sim.statuses.last.stops == 0


def test_while_the_clock_is_paused_nothing_is_commanded_and_nothing_trips(playing, tools):
    playing.clock = False
    time.sleep(0.3)  # what was on its way
    count, stops = len(playing.commands), playing.statuses.last.stops
    time.sleep(1.5)
    assert len(playing.commands) == count
    assert playing.state not in STOPPED
    playing.clock = True
    tools.eventually(lambda: len(playing.commands) > count + 20, "commands again")
    assert playing.statuses.last.stops == stops


def test_a_pause_of_the_clock_leaves_no_jump_in_the_commands(playing, tools):
    playing.clock = False
    time.sleep(1.0)
    playing.clock = True
    count = len(playing.commands)
    tools.eventually(lambda: len(playing.commands) > count + 25, "commands again")
    assert largest_step(playing.path()) <= step_limit(playing)


def test_a_clock_set_back_empties_the_queue_and_the_command_does_not_jump(playing, tools):
    playing.pass_time(1.0)
    moment = time.monotonic()
    playing.set_back(1.5)
    tools.eventually(lambda: any(
        PlayerStatus.REASON_CLOCK_JUMP in status.reasons
        for _, status in playing.statuses.since(moment)), "a status that names the jump")
    tools.eventually(
        lambda: any(status.state == PlayerStatus.STATE_PLAYING
                    for _, status in playing.statuses.since(moment)), "playing again")
    assert largest_step(playing.path()) <= step_limit(playing)


def test_a_clock_set_back_is_no_trip(playing, tools):
    playing.pass_time(0.5)
    playing.set_back(300.0)
    moment = time.monotonic()
    tools.eventually(
        lambda: any(status.state == PlayerStatus.STATE_PLAYING
                    for _, status in playing.statuses.since(moment + 0.3)), "playing again")
    assert PlayerStatus.STATE_TRIPPED not in [s.state for s in playing.statuses.messages]
    assert playing.statuses.last.trip_reason == PlayerStatus.REASON_NONE


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_commands_come_by_the_clock_at_whatever_rate_it_runs(sim, tools, rate):
    sim.rate = rate
    sim.clock = sim.joints = sim.chunks = True
    tools.eventually(lambda: sim.state == PlayerStatus.STATE_PLAYING, "playing")
    began_ns, ticks = sim.now_ns, sim.statuses.last.ticks + sim.statuses.last.ticks_missed
    sim.pass_time(2.0)
    last = sim.statuses.last
    expected = (sim.now_ns - began_ns) * 1e-9 * sim.robot.player.rate_hz
    # Within a third: a status is up to 0.1 s of the machine's time old at either end.
    assert last.ticks + last.ticks_missed - ticks == pytest.approx(expected, rel=0.33)
    assert last.stops == 0


def test_a_stop_asked_for_while_the_clock_stands_still_does_not_hang(playing, graph):
    playing.clock = False
    time.sleep(0.3)
    assert playing.process.end() == 0, playing.process.output
    assert "Traceback" not in playing.process.output


def test_the_world_is_the_clock_of_the_player(graph, tools):
    graph.start("world", publish_clock=True, image_rate=0.0)
    graph.start("action_player", use_sim_time=True)
    graph.start("scripted_policy", use_sim_time=True)
    statuses = graph.record(PlayerStatus, "action_player/status", LATCHED_QOS)
    joints = graph.record(JointState, "joint_states")
    for name in ("world", "action_player", "scripted_policy"):
        graph.bring_up(name)
    tools.eventually(lambda: statuses and statuses.last.state == PlayerStatus.STATE_PLAYING,
                     "playing")
    tools.eventually(lambda: joints, "joint states")
    start = np.array(joints.last.position)
    tools.eventually(lambda: np.abs(np.array(joints.last.position) - start).max() > 0.05,
                     "the arm to move")
    # Stamps count from the start of the simulation, not from 1970.
    assert statuses.last.header.stamp.sec < 1000 and joints.last.header.stamp.sec < 1000
