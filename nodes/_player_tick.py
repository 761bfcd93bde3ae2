# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The action player's tick, in a thread of its own. Nothing in it logs, and nothing in it waits."""

from __future__ import annotations

import gc
import queue
import time
import traceback

from rclpy.clock import ClockType
from std_msgs.msg import Float64MultiArray

from omni_ros.nodes._player_messages import chunk_from_message, command_message, status_message
from omni_ros.nodes._sources import Seen
from omni_ros.nodes._support import to_ns
from omni_ros.player.pacing import SimPacer, WallPacer
from omni_ros.player.reasons import State
from omni_ros.telemetry.realtime import freeze_gc, lock_memory, set_affinity, set_fifo

STATUS_PERIOD_S = 0.1
#: Looks, a tenth of a second apart, at a simulated clock that stands before the arm is told to.
STILL_WAITS = 5
#: Slack that a tick must leave before idle work (young garbage) is done in it.
IDLE_SLACK_S = 0.010


class PlayerTick:
    """That half of the node which its tick's thread runs, `_run_ticks` from first to last.

    The other half (action_player.py) makes what is used here before the thread starts: `_player`, `_robot`,
    the polled subscriptions, the publishers and `_watch`. While the thread runs they are its own; what
    the other half wants of them it puts into `_requests`.
    """

    def _now_ns(self) -> int:
        return self.get_clock().now().nanoseconds

    def _run_ticks(self) -> None:
        try:
            self._tick_until_stopped()
        except Exception:  # noqa: BLE001 - a tick that dies must stop the arm and be seen
            self._last_resort()
            self.get_logger().fatal(f"the tick died, ending the process:\n{traceback.format_exc()}")
            self.exit_status = 1
            self.stop_requested.set()

    def _last_resort(self) -> None:
        """Stop what a controller would otherwise go on doing without us.

        A joint trajectory already ends in a stop, and a forward position controller holds its last
        position. A forward velocity controller would move on for ever.
        """
        if self._robot.player.velocity_mode and not self._dry_run:
            self._commands.publish(
                Float64MultiArray(data=[0.0] * len(self._robot.joints)))

    def _tick_until_stopped(self) -> None:
        self._realtime = self._ask_realtime()
        player, period_ns = self._player, self._robot.player.period_ns
        simulated = self.get_clock().ros_time_is_active if (
            self.get_clock().clock_type == ClockType.ROS_TIME) else False
        pacer = SimPacer(period_ns, self._now_ns) if simulated else WallPacer(period_ns)
        self._last_state, self._status_due_ns, self._idle_due = None, 0, 0
        player.activate(self._now_ns())
        stopping = False
        still_waits = 0  # looks in a row at a simulated clock that stands, or has not begun
        while True:
            late_ns = pacer.wait()
            if self._stop.is_set() and not stopping:
                stopping = True
                player.deactivate(self._now_ns())
            if late_ns is None:
                still_waits += 1
                if still_waits >= STILL_WAITS:
                    # In a world without time nothing can brake, but a velocity may still be driving
                    # an arm that is outside of that world.
                    if self._robot.player.velocity_mode:
                        self._last_resort()
                        player.on_clock_jump(self._now_ns())
                    if stopping:
                        break
            else:
                still_waits = 0
                self._lateness.add(late_ns)
            self._tick(self._now_ns(), standstill=late_ns is None)
            if stopping and player.state is State.INACTIVE:
                break
            self._idle(pacer.slack_s())
        self._publish_status(self._now_ns())

    def _tick(self, now_ns: int, standstill: bool) -> None:
        player, robot = self._player, self._robot
        self._serve_requests(now_ns)
        for message in self._joint_states.take():
            player.on_joint_state(message.name, message.position, message.velocity,
                                  to_ns(message.header.stamp), now_ns)
        for message in self._beats.take():
            seen = self._watch.see(message)
            if seen is not Seen.SAME:
                player.on_source_exit(message.source, now_ns)  # chunk ids start anew
            if seen is not Seen.ENDED:
                player.on_heartbeat(message.source, now_ns)
        for source in self._watch.ended():
            player.on_source_exit(source, now_ns)
        for message in self._preferences.take():  # before the chunks that it is about
            player.prefer(message.data)
        for message in self._chunks.take():
            player.on_chunk(chunk_from_message(message, robot, now_ns), now_ns)
        if not standstill or now_ns <= 0:
            command = player.tick(now_ns)
            if command is not None and not self._dry_run:
                self._commands.publish(command_message(command, robot))
        self._publish_status_when_due(now_ns)

    def _publish_status_when_due(self, now_ns: int) -> None:
        machine_ns = time.monotonic_ns()
        if self._player.state != self._last_state or machine_ns >= self._status_due_ns:
            self._last_state = self._player.state
            self._status_due_ns = machine_ns + round(STATUS_PERIOD_S * 1e9)
            self._publish_status(now_ns)

    def _publish_status(self, now_ns: int) -> None:
        status = self._player.status(now_ns)
        self._sequence += 1
        message = status_message(
            status, sequence=self._sequence, dry_run=self._dry_run,
            lateness=self._lateness.summary_s(), realtime=self._realtime,
            last_refusal=self._player.last_refusal)
        self._statuses.publish(message)
        self._diagnostics.note(message)

    def _idle(self, slack_s: float) -> None:
        """Collect young garbage once a second, in the slack after a tick."""
        self._idle_due += 1
        if (not gc.isenabled() and slack_s > IDLE_SLACK_S
                and self._idle_due >= self._robot.player.rate_hz):
            self._idle_due = 0
            gc.collect(0)

    def _ask_realtime(self) -> list[str]:
        """Ask the operating system for what the parameters want, on the tick's own thread."""
        get = self.get_parameter
        answers = []
        if self._cpus:
            answers.append(set_affinity(self._cpus))
        if get("realtime_priority").value > 0:
            answers.append(set_fifo(get("realtime_priority").value))
        if get("lock_memory").value:
            answers.append(lock_memory())
        if get("freeze_gc").value:
            answers.append(freeze_gc())
        self._diagnostics.note_realtime(answers)
        return [str(answer) for answer in answers]

    def _serve_requests(self, now_ns: int) -> None:
        while True:
            try:
                action, answer = self._requests.get_nowait()
            except queue.Empty:
                return
            result = action(now_ns)
            if answer is not None:
                answer.set_result(result)
