# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A chunk source without a network: traces a path, with a latency of its own choosing.

It behaves as a policy does: one observation at a time, an inference that takes `latency` seconds,
then a chunk stamped with the observation. Heartbeats go on while it "infers".
"""

from __future__ import annotations

import os
import threading
import time

from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState

from omni_ros.msg import ActionChunk, Heartbeat, StageTiming
from omni_ros.nodes._runtime import logged, run
from omni_ros.nodes._support import (
    CHUNK_QOS,
    COMMAND_QOS,
    SENSOR_QOS,
    describe,
    describe_int,
    duration_message,
    load_robot_parameter,
    pid_scope,
    time_message,
    to_ns,
)
from omni_ros.policy.scripted import ScriptedPolicy, circle_path, wave_path

HEARTBEAT_PERIOD_S = 0.05


class ScriptedPolicyNode(LifecycleNode):
    """Publishes `action_chunk` and `heartbeat`; reads `joint_states`."""

    def __init__(self) -> None:
        super().__init__("scripted_policy")
        declare = self.declare_parameter
        declare("robot", "tabletop", describe("robot YAML: a path, or a name in config/robots"))
        declare("path", "circle", describe(
            "circle: the tip of the table-top arm draws a circle; wave: slow sines about the home "
            "pose, for any robot"))
        declare("source", "scripted", describe("name of this source in chunks and heartbeats"))
        declare("rate", 5.0, describe("chunks a second", low=0.1, high=100.0))
        declare("latency", 0.1, describe("seconds an inference takes", low=0.0, high=60.0))
        declare("rows", 50, describe_int("rows of a chunk", low=1, high=4096))
        declare("dt", 0.02, describe("seconds between rows", low=0.001, high=10.0))
        declare("life", 2.0, describe("seconds after the observation that a chunk may be played",
                                      low=0.01, high=600.0))
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()  # guards _joint_state, set by the executor's thread
        self._joint_state: JointState | None = None
        self._chunk_id = 0

    @logged
    def on_configure(self, state):
        get = self.get_parameter
        self._robot = load_robot_parameter(get("robot").value)
        robot = self._robot
        path = get("path").value
        if path == "circle" and robot.name == "tabletop":
            self._path = circle_path()
        elif path == "wave":
            self._path = wave_path(robot.lower + robot.margin, robot.upper - robot.margin,
                                   robot.home)
        else:
            raise ValueError(
                f"path is {path!r} for robot {robot.name!r}: 'wave' is for any robot, 'circle' for "
                "the robot 'tabletop' only")
        self._policy = ScriptedPolicy(self._path, get("rows").value, get("dt").value)
        self._chunks = self.create_publisher(ActionChunk, "action_chunk", CHUNK_QOS)
        self._beats = self.create_publisher(Heartbeat, "heartbeat", COMMAND_QOS)
        self._joints = self.create_subscription(
            JointState, robot.topics["joint_states"], self._on_joint_state, SENSOR_QOS)

    @logged
    def on_activate(self, state):
        self._joint_state = None
        self._started_ns = None
        self._stop.clear()
        self._threads = [
            threading.Thread(target=self._beat_loop, name="heartbeat", daemon=True),
            threading.Thread(target=self._policy_loop, name="policy", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @logged
    def on_deactivate(self, state):
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5.0)
        self._threads = []

    @logged
    def on_cleanup(self, state):
        self.destroy_publisher(self._chunks)
        self.destroy_publisher(self._beats)
        self.destroy_subscription(self._joints)

    def _on_joint_state(self, message: JointState) -> None:
        with self._lock:
            self._joint_state = message

    def _beat_loop(self) -> None:
        beat = Heartbeat(source=self.get_parameter("source").value, pid=os.getpid(),
                         pid_scope=pid_scope())
        while not self._stop.wait(HEARTBEAT_PERIOD_S):
            beat.header.stamp = self.get_clock().now().to_msg()
            beat.sequence += 1
            self._beats.publish(beat)

    def _policy_loop(self) -> None:
        """One observation after the other, at `rate`; the newest joint state is the observation."""
        deadline = time.monotonic()
        while not self._stop.is_set():
            period = 1.0 / self.get_parameter("rate").value
            latency = self.get_parameter("latency").value
            with self._lock:
                observation = self._joint_state
            if observation is not None:
                self._infer(observation, latency)
            if latency > period:
                self.get_logger().warning(
                    f"inference takes {latency * 1e3:.0f} ms, longer than the {period * 1e3:.0f} ms "
                    f"between chunks at {1 / period:g} Hz: chunks come at {1 / latency:.1f} Hz",
                    throttle_duration_sec=5.0)
            deadline = max(deadline + period, time.monotonic())
            self._stop.wait(deadline - time.monotonic())

    def _infer(self, observation: JointState, latency: float) -> None:
        robot = self._robot
        positions = dict(zip(observation.name, observation.position))
        missing = [name for name in robot.joint_names if name not in positions]
        if missing:
            self.get_logger().warning(
                f"joint_states lacks {', '.join(missing)}; it has {', '.join(observation.name)}",
                throttle_duration_sec=5.0)
            return
        began = time.monotonic()
        stamp_ns = to_ns(observation.header.stamp)
        if self._started_ns is None or stamp_ns < self._started_ns:
            self._started_ns = stamp_ns
        measured = [positions[name] for name in robot.joint_names]
        elapsed = (stamp_ns - self._started_ns) * 1e-9
        if robot.player.velocity_mode:
            mode = ActionChunk.CONTROL_VELOCITY
            values = robot.velocity_to_policy(self._policy.velocities(elapsed, measured))
        else:
            mode = ActionChunk.CONTROL_POSITION
            values = robot.to_policy(self._policy.positions(elapsed, measured))
        if self._stop.wait(max(0.0, latency - (time.monotonic() - began))):
            return
        self._publish(stamp_ns, mode, values, time.monotonic() - began)

    def _publish(self, stamp_ns: int, mode: int, values, seconds: float) -> None:
        get = self.get_parameter
        self._chunk_id += 1
        chunk = ActionChunk(
            control_mode=mode, joint_names=self._robot.joint_names,
            joint_units=self._robot.policy_units, rows=len(values), chunk_id=self._chunk_id,
            observation_seq=self._chunk_id, source=get("source").value,
            dt=duration_message(round(get("dt").value * 1e9)),
            life=duration_message(round(get("life").value * 1e9)),
            timings=[StageTiming(stage="script", duration=duration_message(round(seconds * 1e9)))])
        chunk.header.stamp = time_message(stamp_ns)
        chunk.header.frame_id = self._robot.base_frame
        chunk.values.frombytes(values.tobytes())
        self._chunks.publish(chunk)


def main(argv: list | None = None) -> int:
    return run(ScriptedPolicyNode, argv)
