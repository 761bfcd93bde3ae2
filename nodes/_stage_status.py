# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a stage says of itself: `policy_status`, the log and /diagnostics, on the executor's thread."""

from __future__ import annotations

import os
from array import array
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from diagnostic_updater import Updater
from rclpy.clock import Clock, ClockType

from omni_ros.msg import PolicyStatus
from omni_ros.nodes._polled import Connections
from omni_ros.nodes._support import LATCHED_QOS, pid_scope, time_message
from omni_ros.stages.gate import DROPS
from omni_ros.stages.tally import Numbers, State

#: Seconds between two looks at what the working thread left behind.
LOOK_PERIOD_S = 0.05
#: Seconds between two statuses when nothing changes.
STATUS_PERIOD_S = 1.0
#: A state that lasts shorter than this is not worth a line in the log, seconds.
LOG_AFTER_S = 1.0
#: Characters that tell one reason from another; numbers come later in a text.
FEW = 24
#: Stamps from here on, of messages that are not in order, fit into no stamp.
LATEST_NS = 2**31 * 1_000_000_000

LEVELS = {State.WAITING: DiagnosticStatus.WARN, State.ERROR: DiagnosticStatus.ERROR}


class StageStatus:
    """Publishes a stage's status, logs what changes, and answers the diagnostic updater."""

    def __init__(self, node: Any) -> None:
        """:param node: a `StageNode`."""
        self._node = node
        self._scope = pid_scope()
        self._sequence = 0
        self._shown: tuple[State, str] | None = None
        self._logged: tuple[State, str] = (State.INACTIVE, "")
        self._since_ns = self._due_ns = 0
        self._dropped: dict[str, int] = {}
        self.connections = Connections(node)
        self._publisher = node.create_publisher(PolicyStatus, "policy_status", LATCHED_QOS)
        self._updater = Updater(node)
        self._updater.setHardwareID(node.get_fully_qualified_name())
        for name, task in (("state", self._state_task), ("observations", self._observations_task),
                           ("timing", self._timing_task), ("connections", self.connections.report),
                           ("placement", self._placement_task)):
            self._updater.add(name, task)
        # By the machine's time: a simulated clock that never comes is the very thing to report.
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(LOOK_PERIOD_S, self.look, clock=self._steady)
        node.destroy_timer(self._updater.timer)
        self._updater.timer = node.create_timer(
            self._updater.period, self._updater.update, clock=self._steady)

    def look(self, *, now: bool = False) -> None:
        """Publish a status if there is news, or it is time, or `now`."""
        numbers = self._node.tally.numbers()
        mono_ns = self._steady.now().nanoseconds
        current = numbers.state, numbers.text
        if self._shown is None or current[0] != self._shown[0]:
            self._since_ns, now = mono_ns, True
        self._log(*current, mono_ns)
        self._log_drops(numbers)
        if now or mono_ns >= self._due_ns:
            self._shown = current
            self._due_ns = mono_ns + round(STATUS_PERIOD_S * 1e9)
            self._publisher.publish(self._message(numbers))

    def _log(self, state: State, text: str, mono_ns: int) -> None:
        """Log what lasts, once: between two observations a stage always waits a moment."""
        if (state, text[:FEW]) == self._logged:
            return
        if state is not State.ERROR and mono_ns - self._since_ns < LOG_AFTER_S * 1e9:
            if state is State.RUNNING and self._logged[0] is State.WAITING:
                self._logged = state, ""  # the next wait is another one
            return
        if state is State.RUNNING and self._logged == (state, ""):
            return
        log = self._node.get_logger()
        if state is State.ERROR:
            log.error(text)
        elif state is State.WAITING:
            log.warning(text)
        else:
            log.info(text)
        self._logged = state, text[:FEW]

    def _log_drops(self, numbers: Numbers) -> None:
        for reason, number in numbers.dropped.items():
            if number > self._dropped.get(reason, 0) and reason not in self._node.quiet_drops:
                self._node.get_logger().warning(
                    f"observation {numbers.observation_seq} dropped, {reason}: "
                    f"{DROPS.get(reason, reason)} ({number} so far)", throttle_duration_sec=5.0)
        self._dropped = numbers.dropped

    def _message(self, numbers: Numbers) -> PolicyStatus:
        node = self._node
        self._sequence += 1
        message = PolicyStatus(
            sequence=self._sequence, stage=node.stage, state=int(numbers.state), text=numbers.text,
            pid=os.getpid(), pid_scope=self._scope, observation_seq=numbers.observation_seq,
            observation_stamp=time_message(
                numbers.observation_stamp_ns if numbers.observation_stamp_ns < LATEST_NS else 0),
            observations_started=numbers.started, observations_handed_on=numbers.handed_on,
            dropped_reasons=list(numbers.dropped), dropped=array("Q", numbers.dropped.values()),
            timing_names=list(numbers.timings),
            timing_p50=array("d", [low for low, _ in numbers.timings.values()]),
            timing_p99=array("d", [high for _, high in numbers.timings.values()]),
            latency_p50=numbers.latency[0], latency_p99=numbers.latency[1],
            chunk_rate_hz=numbers.rate_hz)
        message.header.stamp = node.get_clock().now().to_msg()
        node.fill_status(message)
        return message

    def destroy(self) -> None:
        self._node.destroy_publisher(self._publisher)

    # -- diagnostic tasks ----------------------------------------------------------------------

    def _state_task(self, out):
        numbers = self._node.tally.numbers()
        level = LEVELS.get(numbers.state, DiagnosticStatus.OK)
        out.summary(level, numbers.text or numbers.state.name.lower())
        for text in self._node.complaints():
            out.mergeSummary(DiagnosticStatus.WARN, text)
        return out

    def _observations_task(self, out):
        numbers = self._node.tally.numbers()
        loud = {reason: n for reason, n in numbers.dropped.items()
                if reason not in self._node.quiet_drops}
        level = DiagnosticStatus.WARN if loud else DiagnosticStatus.OK
        out.summary(level, f"{numbers.handed_on} handed on, {sum(numbers.dropped.values())} dropped")
        out.add("started", str(numbers.started))
        for reason, number in numbers.dropped.items():
            out.add(f"dropped: {reason}", str(number))
        return out

    def _timing_task(self, out):
        numbers = self._node.tally.numbers()
        if not numbers.timings:
            out.summary(DiagnosticStatus.OK, "nothing timed yet")
            return out
        low, high = numbers.latency
        total = f", {low * 1e3:.0f} ms from stamp to chunk (p99 {high * 1e3:.0f})" if low == low else ""
        out.summary(DiagnosticStatus.OK, f"{numbers.rate_hz:.1f} a second{total}")
        for name, (median, rare) in numbers.timings.items():
            out.add(f"{name} p50/p99 ms", f"{median * 1e3:.2f} / {rare * 1e3:.2f}")
        return out

    def _placement_task(self, out):
        texts = self._node.placement_texts
        out.summary(DiagnosticStatus.OK, texts[0] if texts else "not configured")
        for number, text in enumerate(texts[1:]):
            out.add(str(number), text)
        return out
