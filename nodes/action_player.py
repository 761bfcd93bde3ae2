# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Plays action chunks at a fixed rate, limited and watched: the last thing before the robot.

One thread ticks (_player_tick.py); the executor's thread serves everything else (services, parameters,
diagnostics, /clock), and is what is here. The two meet in a queue of requests that the tick works off.
"""

from __future__ import annotations

import os
import queue
import threading
from concurrent.futures import Future
from functools import partial
from typing import Callable

from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from omni_ros.msg import ActionChunk, Heartbeat, PlayerStatus
from omni_ros.nodes._player_diagnostics import PlayerDiagnostics
from omni_ros.nodes._player_messages import command_message
from omni_ros.nodes._player_tick import PlayerTick
from omni_ros.nodes._polled import PolledSubscription
from omni_ros.nodes._runtime import logged, run
from omni_ros.nodes._sources import ProcessWatch
from omni_ros.nodes._support import (
    CHUNK_QOS,
    COMMAND_QOS,
    JOINT_STATES_QOS,
    LATCHED_QOS,
    STOP_QOS,
    describe,
    describe_int,
    load_robot_parameter,
    wait_until_heard,
)
from omni_ros.player.latch import TripLatch
from omni_ros.player.limiter import Limiter
from omni_ros.player.player import Player
from omni_ros.player.reasons import Reason
from omni_ros.player.warm_up import warm_up
from omni_ros.robot import Robot
from omni_ros.telemetry.cpulist import parse_cpus
from omni_ros.telemetry.lateness import Lateness

#: Seconds between two looks whether a trip has to be written to, or removed from, its file.
LATCH_PERIOD_S = 0.05
#: A service call waits this long for the tick to answer.
ANSWER_TIMEOUT_S = 1.0
#: Beyond the longest stop that the limits can ask for: a tick that takes longer has hung.
STOP_MARGIN_S = 2.0


class ActionPlayer(PlayerTick, LifecycleNode):
    """Subscribes to `action_chunk`, `heartbeat`, joint states and `protective_stop`; commands."""

    def __init__(self) -> None:
        super().__init__("action_player")
        declare = self.declare_parameter
        declare("robot", "tabletop", describe(
            "robot YAML: a path, or a name in config/robots", read_only=True))
        declare("dry_run", False, describe("do everything but send commands", read_only=True))
        declare("realtime_cpus", "", describe(
            "cpus the tick may run on, e.g. '3', '2,3' or '2-3'; empty: any", read_only=True))
        declare("realtime_priority", 0, describe_int(
            "SCHED_FIFO priority of the tick; 0: ordinary scheduling", low=0, high=98,
            read_only=True))
        declare("lock_memory", False, describe("lock all memory of the process", read_only=True))
        declare("freeze_gc", True, describe(
            "collect no garbage while a tick is due: freeze what exists at activation, and collect "
            "young objects only in the slack after a tick", read_only=True))
        self._requests: queue.SimpleQueue = queue.SimpleQueue()
        self._teardown: list[Callable[[], None]] = []
        self._hung = False  # a tick that did not end when it was told to
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._lateness = Lateness()
        self._player: Player | None = None
        self._realtime: list[str] = []
        self._sequence = 0
        self._diagnostics = PlayerDiagnostics(self)
        self._latch = TripLatch(
            self.get_fully_qualified_name(), os.environ.get("ROS_DOMAIN_ID") or "0")
        # The stop that is asked for on the topic now; it may come before there is a player.
        self._stop_standing = False
        self.create_timer(LATCH_PERIOD_S, self._keep_latch,
                          clock=Clock(clock_type=ClockType.STEADY_TIME))

    # -- lifecycle ---------------------------------------------------------------------------

    @logged
    def on_configure(self, state):
        try:
            self._configure()
        except BaseException:
            self._free()  # nothing half-made may stay on the graph
            raise

    def _configure(self) -> None:
        try:
            self._cpus = parse_cpus(self.get_parameter("realtime_cpus").value)
        except ValueError as error:
            raise ValueError(f"realtime_cpus: {error}") from None
        robot = load_robot_parameter(self.get_parameter("robot").value)
        self._robot = robot
        self._dry_run = self.get_parameter("dry_run").value
        warm_up(robot, lambda command: command_message(command, robot))
        self._longest_stop_s = Limiter(robot).periods * robot.player.period_s
        self._player = self._new_player(robot)
        self._lateness.clear()
        kind = JointTrajectory if robot.player.output == "joint_trajectory" else Float64MultiArray
        overridable = QoSOverridingOptions.with_default_policies()
        self._commands = self._publisher(
            kind, robot.command_topic, COMMAND_QOS, qos_overriding_options=overridable)
        self._statuses = self._publisher(PlayerStatus, "~/status", LATCHED_QOS)
        self._joint_states = self._polled(JointState, robot.topics["joint_states"], JOINT_STATES_QOS)
        self._chunks = self._polled(ActionChunk, "action_chunk", CHUNK_QOS)
        self._beats = self._polled(Heartbeat, "heartbeat", CHUNK_QOS)
        self._preferences = self._polled(String, "preferred_source", LATCHED_QOS)
        self._diagnostics.connections.subscriptions = (
            self._joint_states, self._chunks, self._beats, self._preferences)
        # Not polled: rare, and to be logged at once. Two, so that a latched stop is heard at once and
        # one from a volatile publisher at all.
        for qos in (LATCHED_QOS, STOP_QOS):
            subscription = self.create_subscription(
                Bool, "protective_stop", self._on_protective_stop, qos)
            self._teardown.append(partial(self.destroy_subscription, subscription))
        for name, serve in (("~/protective_stop", self._serve_protective_stop),
                            ("~/reset", self._serve_reset),
                            ("~/reset_lateness", self._serve_reset_lateness)):
            self._teardown.append(
                partial(self.destroy_service, self.create_service(Trigger, name, serve)))
        self._publish_status(self._now_ns())
        self.get_logger().info(
            f"robot {robot.name}: {len(robot.joints)} joints, {robot.player.rate_hz:g} Hz, "
            f"{robot.player.output} on {self._commands.topic_name}"
            + (", dry run: nothing is sent" if self._dry_run else ""))

    @logged
    def on_activate(self, state):
        if self._thread is not None:
            raise ValueError("the tick of the last activation has not ended; restart the process")
        self._stop.clear()
        self._watch = ProcessWatch()
        for subscription in (self._joint_states, self._chunks, self._beats):
            for _ in subscription.take(most=64):
                pass  # what came before activation is nothing to act on
        self._thread = threading.Thread(target=self._run_ticks, name="tick", daemon=True)
        self._thread.start()

    @logged
    def on_deactivate(self, state):
        """Brake to rest within the limits, say so, then end the ticks."""
        self._stop_ticks()

    @logged
    def on_cleanup(self, state):
        self._free()

    @logged
    def on_shutdown(self, state):
        self._stop_ticks()
        self._free()

    def on_error(self, state):
        self._stop_ticks()
        self._free()
        return super().on_error(state)

    def _stop_ticks(self) -> None:
        if self._thread is None:
            return
        self._stop.set()
        longest_s = 0.0 if self._hung else self._longest_stop_s + STOP_MARGIN_S
        self._thread.join(timeout=longest_s)
        if self._thread.is_alive():
            if self._hung:
                return
            self._hung = True
            self._last_resort()
            self.exit_status = 1
            self.stop_requested.set()
            raise RuntimeError(f"the tick did not end within {longest_s:.1f} s; ending the process")
        self._thread = None
        self._watch.close()

    def _free(self) -> None:
        """Undo what configure made, as far as it got."""
        self._keep_latch()
        self._player = None
        self._stop_standing = False
        self._diagnostics.connections.subscriptions = ()
        while self._teardown:
            self._teardown.pop()()

    def _publisher(self, kind, topic: str, qos, **options):
        publisher = self.create_publisher(kind, topic, qos, **options)

        def destroy() -> None:
            wait_until_heard(publisher)
            self.destroy_publisher(publisher)

        self._teardown.append(destroy)
        return publisher

    def _polled(self, kind, topic: str, qos) -> PolledSubscription:
        subscription = PolledSubscription(self, kind, topic, qos)
        self._teardown.append(subscription.destroy)
        return subscription

    # -- the executor's thread ---------------------------------------------------------------

    def _ask_tick(self, action: Callable[[int], tuple[bool, str]]) -> tuple[bool, str]:
        """Have the tick do something between two ticks; wait for its answer."""
        if self._thread is None or not self._thread.is_alive():
            return False, "the player is not active"
        answer: Future = Future()
        self._requests.put((action, answer))
        try:
            return answer.result(timeout=ANSWER_TIMEOUT_S)
        except TimeoutError:
            return False, f"the tick did not answer within {ANSWER_TIMEOUT_S:g} s"

    def _new_player(self, robot: Robot) -> Player:
        """Return a player that is tripped if the last one was and nobody has reset it."""
        player = Player(robot)
        reason = self._latch.load()
        if reason is not Reason.NONE:
            player.restore_trip(reason, self._now_ns())
            self.get_logger().error(
                f"tripped before this start, {reason.name}, and not reset since: when it is safe to "
                f"move, call {self.get_fully_qualified_name()}/reset")
        return player

    def _keep_latch(self) -> None:
        """Have the file say what the player says; no disk is touched on the tick."""
        if self._player is None:
            return
        try:
            self._latch.keep(self._player.trip_reason)
            self._diagnostics.latch_fault = ""
        except OSError as error:
            self._diagnostics.latch_fault = f"a trip cannot be kept beyond this process: {error}"
            self.get_logger().error(self._diagnostics.latch_fault, throttle_duration_sec=5.0)

    def _on_protective_stop(self, message: Bool) -> None:
        """True stops, and forbids a reset as long as it stands; False allows one."""
        if message.data == self._stop_standing:
            return  # both subscriptions heard it
        self._stop_standing = message.data
        self._with_player(lambda now_ns: self._player.protective_stop(message.data, now_ns))
        if message.data:
            self.get_logger().error("protective stop: asked for on the topic")
        else:
            self.get_logger().info("protective stop: no longer asked for; a reset is possible")

    def _with_player(self, action: Callable[[int], None]) -> None:
        """Do something to the player: between two ticks, or at once where none are running."""
        if self._thread is not None and self._thread.is_alive():
            self._requests.put((action, None))
        else:
            action(self._now_ns())
            self._publish_status(self._now_ns())

    def _serve_protective_stop(self, request, response):
        def stop(now_ns: int) -> tuple[bool, str]:
            # For this moment only: what stands is said on the topic.
            self._player.protective_stop(True, now_ns)
            self._player.protective_stop(self._stop_standing, now_ns)
            return True, "stopping; call ~/reset when it is safe to move again"

        self.get_logger().error("protective stop: asked for by service")
        if self._thread is not None and self._thread.is_alive():
            response.success, response.message = self._ask_tick(stop)
        else:
            response.success, response.message = stop(self._now_ns())
            self._publish_status(self._now_ns())
        return response

    def _serve_reset(self, request, response):
        response.success, response.message = self._ask_tick(
            lambda now_ns: self._player.reset(now_ns))
        return response

    def _serve_reset_lateness(self, request, response):
        def clear(now_ns: int) -> tuple[bool, str]:
            self._lateness.clear()
            return True, "tick lateness is counted anew"
        response.success, response.message = self._ask_tick(clear)
        return response


def main(argv: list | None = None) -> int:
    return run(ActionPlayer, argv)

