# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Log and /diagnostics of the action player, written by the executor's thread, never by the tick."""

from __future__ import annotations

from collections import deque
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from diagnostic_updater import Updater
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from omni_ros.msg import PlayerStatus
from omni_ros.nodes._polled import Connections
from omni_ros.player.reasons import Reason, State

#: Seconds between two looks at what the tick left behind.
LOOK_PERIOD_S = 0.05
#: Refusals of one kind are logged at most this often, seconds.
THROTTLE_S = 5.0

LEVELS = {State.STALE: DiagnosticStatus.WARN, State.TRIPPED: DiagnosticStatus.ERROR}


class PlayerDiagnostics:
    """Takes statuses from the tick, logs changes, and answers the diagnostic updater."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._statuses: deque[PlayerStatus] = deque(maxlen=32)  # tick appends, executor pops
        self._latest: PlayerStatus | None = None
        self._state = State.INACTIVE
        self._refused: list[int] = []
        self._realtime: list[Any] = []
        self._unlogged_realtime: list[Any] = []
        self.connections = Connections(node)
        self.latch_fault = ""  # why a trip would not outlive this process
        self._updater = Updater(node)
        self._updater.setHardwareID(node.get_fully_qualified_name())
        for name, task in (("state", self._state_task), ("tick", self._tick_task),
                           ("chunks", self._chunks_task), ("limits", self._limits_task),
                           ("real time", self._realtime_task), ("connections", self.connections.report)):
            self._updater.add(name, task)
        # By the machine's time: a simulated clock that never comes is the very thing to report.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(LOOK_PERIOD_S, self._look, clock=steady)
        node.destroy_timer(self._updater.timer)
        self._updater.timer = node.create_timer(
            self._updater.period, self._updater.update, clock=steady)

    # -- called by the tick --------------------------------------------------------------------

    def note(self, status: PlayerStatus) -> None:
        self._statuses.append(status)

    def note_realtime(self, answers: list[Any]) -> None:
        self._realtime = answers
        self._unlogged_realtime = list(answers)

    # -- called by the executor ----------------------------------------------------------------

    def _look(self) -> None:
        for answer in self._unlogged_realtime:
            log = self._node.get_logger()
            (log.info if answer.granted else log.warning)(f"real time: {answer}")
        self._unlogged_realtime = []
        while self._statuses:
            status = self._statuses.popleft()
            self._latest = status
            self._log_state(status)
            self._log_refusals(status)

    def _log_state(self, status: PlayerStatus) -> None:
        state = State(status.state)
        if state == self._state:
            return
        self._state = state
        log = self._node.get_logger()
        text = status.text
        if state is State.TRIPPED:
            log.error(text)
        elif state in (State.STALE, State.WAITING):
            log.warning(text)
        else:
            log.info(text)

    def _log_refusals(self, status: PlayerStatus) -> None:
        before = self._refused or [0] * len(status.refused)
        fresh = [Reason(code) for code, (old, new) in enumerate(zip(before, status.refused))
                 if new > old]
        self._refused = list(status.refused)
        for reason in fresh:
            self._node.get_logger().warning(
                f"chunk refused, {reason.name}: {status.last_refusal} "
                f"({status.refused[reason]} so far)",
                throttle_duration_sec=THROTTLE_S)

    # -- diagnostic tasks ----------------------------------------------------------------------

    def _state_task(self, out):
        status = self._latest
        if status is None:
            out.summary(DiagnosticStatus.OK, "not configured")
            return out
        state = State(status.state)
        out.summary(LEVELS.get(state, DiagnosticStatus.OK), status.text)
        if self.latch_fault:
            out.mergeSummary(DiagnosticStatus.ERROR, self.latch_fault)
        out.add("reasons", ", ".join(Reason(code).name for code in status.reasons))
        out.add("source", status.source)
        out.add("observation age s", f"{status.observation_age:.3f}")
        out.add("joint state age s", f"{status.joint_state_age:.3f}")
        out.add("heartbeat age s", f"{status.heartbeat_age:.3f}")
        out.add("stops", str(status.stops))
        return out

    def _tick_task(self, out):
        status = self._latest
        if status is None or not status.ticks:
            out.summary(DiagnosticStatus.OK, "no ticks yet")
            return out
        missed = status.ticks_missed / status.ticks
        level = DiagnosticStatus.WARN if missed > 0.01 else DiagnosticStatus.OK
        out.summary(level, f"late by {status.lateness_p99 * 1e3:.1f} ms (p99), "
                           f"{missed:.2%} of ticks missed")
        out.add("lateness p50 ms", f"{status.lateness_p50 * 1e3:.3f}")
        out.add("lateness p99 ms", f"{status.lateness_p99 * 1e3:.3f}")
        out.add("lateness max ms", f"{status.lateness_max * 1e3:.3f}")
        out.add("ticks", str(status.ticks))
        return out

    def _chunks_task(self, out):
        status = self._latest
        if status is None:
            out.summary(DiagnosticStatus.OK, "none yet")
            return out
        refused = sum(status.refused)
        level = DiagnosticStatus.WARN if refused else DiagnosticStatus.OK
        out.summary(level, f"{status.chunks_received} received, {refused} refused")
        out.add("played", str(status.chunks_played))
        out.add("rows dropped late", str(status.rows_dropped_late))
        for code, number in enumerate(status.refused):
            if number:
                out.add(f"refused: {Reason(code).name}", str(number))
        return out

    def _limits_task(self, out):
        status = self._latest
        limited = [] if status is None else list(status.limited)
        out.summary(DiagnosticStatus.OK,
                    "commands were limited" if sum(limited) else "commands were never limited")
        for code, number in enumerate(limited):
            if number:
                out.add(f"ticks limited: {Reason(code).name}", str(number))
        return out

    def _realtime_task(self, out):
        refused = [answer for answer in self._realtime if not answer.granted]
        out.summary(DiagnosticStatus.WARN if refused else DiagnosticStatus.OK,
                    f"{len(refused)} of {len(self._realtime)} requests refused")
        for answer in self._realtime:
            out.add(answer.asked, answer.answer)
        return out
