# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the bridge says of itself, on the executor's thread: `bridge_status`, log, /diagnostics."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Mapping

from diagnostic_msgs.msg import DiagnosticStatus
from diagnostic_updater import Updater
from rclpy.clock import Clock, ClockType

from omni_ros.msg import BridgeStatus
from omni_ros.nodes._polled import Connections
from omni_ros.nodes._support import LATCHED_QOS
from omni_ros.openpi.states import LinkStatus, State

if TYPE_CHECKING:
    from omni_ros.nodes._bridge_modes import WorkReport

#: Seconds between two looks at what the bridge's thread left behind.
LOOK_PERIOD_S = 0.05
#: Seconds between two statuses when nothing changes.
STATUS_PERIOD_S = 1.0
MODES = {"off": BridgeStatus.MODE_OFF, "parity": BridgeStatus.MODE_PARITY,
         "replan": BridgeStatus.MODE_REPLAN}


@dataclass(frozen=True)
class Snapshot:
    """What there is to report at a moment; None while unconfigured."""

    link: LinkStatus | None = None
    work: WorkReport | None = None
    serving: str = ""
    clients: Mapping[str, int] = field(default_factory=dict)


class BridgeReport:
    """Publishes statuses, logs what changes, and answers the diagnostic updater."""

    def __init__(self, node: Any) -> None:
        """:param node: an `OpenpiBridge`."""
        self._node = node
        self._sequence, self._due_ns = 0, 0
        self._shown: tuple | None = None
        self._logged: tuple | None = None
        self.connections = Connections(node)
        self._publisher = node.create_publisher(BridgeStatus, "bridge_status", LATCHED_QOS)
        self._updater = Updater(node)
        self._updater.setHardwareID(node.get_fully_qualified_name())
        for name, task in (("link", self._link_task), ("decision", self._decision_task),
                           ("parity", self._parity_task), ("server", self._server_task),
                           ("connections", self.connections.report)):
            self._updater.add(name, task)
        # By the machine's time: a simulated clock that never comes is the very thing to report.
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(LOOK_PERIOD_S, self.look, clock=self._steady)
        node.destroy_timer(self._updater.timer)
        self._updater.timer = node.create_timer(
            self._updater.period, self._updater.update, clock=self._steady)

    def look(self, *, now: bool = False) -> None:
        """Publish a status if mode, link or decision are others, or it is time, or `now`."""
        found = self._node.snapshot()
        link, work = found.link, found.work
        current = (link and (link.state, link.reason.code),
                   work and (work.mode, work.active, work.source, work.decision.code),
                   found.serving)
        mono_ns = self._steady.now().nanoseconds
        if not now and current == self._shown and mono_ns < self._due_ns:
            return
        self._log(found)
        self._shown, self._due_ns = current, mono_ns + round(STATUS_PERIOD_S * 1e9)
        self._sequence += 1
        self._publisher.publish(self._message(found))

    def _log(self, found: Snapshot) -> None:
        if found.link is None:
            return
        link = (found.link.state, found.link.reason.code)
        decision = None if found.work is None else (found.work.source, found.work.decision.code)
        log = self._node.get_logger()
        before = self._logged or (None, None)
        if link != before[0]:
            text = f"remote {found.link.state.name.lower()}: {found.link.reason.text}"
            if found.link.state is State.DEGRADED:  # a line each: rclpy wants one severity a line
                log.warning(text)
            else:
                log.info(text)
        if decision != before[1] and decision is not None and found.work.mode == "replan":
            log.info(f"{found.work.source} is to be followed: {found.work.decision.text}")
        self._logged = link, decision

    def _message(self, found: Snapshot) -> BridgeStatus:
        node = self._node
        message = BridgeStatus(sequence=self._sequence, serving=found.serving,
                               latency_p50=math.nan, latency_p95=math.nan)
        message.header.stamp = node.get_clock().now().to_msg()
        counters: dict[str, int] = {}
        if found.link is not None:
            link = found.link
            message.link, message.reason = int(link.state), link.reason.code
            message.text, message.url = link.reason.text, link.url
            message.dialect, message.next_try = link.dialect.value, float(link.next_try_s)
            if link.latency_p50 is not None:
                message.latency_p50, message.latency_p95 = link.latency_p50, link.latency_p95
            counters.update(link.counters)
        if found.work is not None:
            work = found.work
            message.mode, message.active = MODES[work.mode], work.active
            message.source, message.decision = work.source, work.decision.code
            message.decision_text = work.decision.text
            message.observation_text = work.observation_text
            message.chunks_offered = work.offered
            counters.update({f"dropped_{code}": n for code, n in work.dropped.items()})
            counters["unpaired"] = work.unpaired
            if work.parity is not None:
                message.pairs = work.parity[0]
                message.joint_names = list(node.robot.joint_names)
                message.largest_difference = array("d", work.parity[1].tolist())
                message.mean_difference = array("d", work.parity[2].tolist())
        counters.update({f"served_{name}": n for name, n in found.clients.items()})
        message.counter_names = list(counters)
        message.counters = array("Q", counters.values())
        return message

    # -- diagnostic tasks ----------------------------------------------------------------------

    def _link_task(self, out):
        link = self._node.snapshot().link
        if link is None:
            out.summary(DiagnosticStatus.OK, "not configured")
            return out
        # The robot does not depend on it, so a link that is down is a warning and no more.
        level = DiagnosticStatus.WARN if link.state is State.DEGRADED else DiagnosticStatus.OK
        out.summary(level, f"{link.state.name.lower()}: {link.reason.text}")
        out.add("url", link.url)
        out.add("dialect", link.dialect.value)
        if link.latency_p50 is not None:
            out.add("latency p50/p95 ms",
                    f"{link.latency_p50 * 1e3:.0f} / {link.latency_p95 * 1e3:.0f}")
        for name, number in link.counters.items():
            if number:
                out.add(name, str(number))
        return out

    def _decision_task(self, out):
        work = self._node.snapshot().work
        if work is None or not work.active:
            out.summary(DiagnosticStatus.OK, "not active")
            return out
        level = DiagnosticStatus.WARN if work.dropped.get("out_of_limits") else DiagnosticStatus.OK
        out.summary(level, f"{work.mode}; follows {work.source}: {work.decision.text}")
        if work.observation_text and work.mode != "off":
            out.mergeSummary(DiagnosticStatus.WARN, work.observation_text)
        out.add("chunks offered", str(work.offered))
        for code, number in work.dropped.items():
            out.add(f"dropped: {code}", str(number))
        if work.last_drop:
            out.add("last dropped", work.last_drop)
        return out

    def _parity_task(self, out):
        work = self._node.snapshot().work
        if work is None or work.parity is None:
            out.summary(DiagnosticStatus.OK, "nothing compared")
            return out
        pairs, largest, mean = work.parity
        names = self._node.robot.joint_names
        worst = int(largest.argmax())
        out.summary(DiagnosticStatus.OK, f"{pairs} pairs, at most {largest[worst]:.3g} apart "
                                         f"({names[worst]}); {work.unpaired} without a partner")
        for name, most, usual in zip(names, largest, mean):
            out.add(f"{name} largest/mean", f"{most:.4g} / {usual:.4g}")
        return out

    def _server_task(self, out):
        found = self._node.snapshot()
        out.summary(DiagnosticStatus.OK, found.serving or "not serving")
        for name, number in found.clients.items():
            out.add(name, str(number))
        return out
