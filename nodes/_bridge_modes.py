# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the bridge's thread does, in each of its modes."""

from __future__ import annotations

import time
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Mapping

import numpy as np
from std_msgs.msg import String

from omni_ros.msg import ActionChunk, ChunkDifference
from omni_ros.nodes._bridge_chunks import Unplayable
from omni_ros.nodes._bridge_senses import Seen
from omni_ros.nodes._player_messages import chunk_from_message
from omni_ros.nodes._support import duration_message, time_message, to_ns
from omni_ros.openpi.arbitration import Arbiter, Decision, Moment, Source
from omni_ros.openpi.live import Difference, ParityMeter, drawing
from omni_ros.openpi.states import Reason, State
from omni_ros.player.chunk import Refusal

OFF, PARITY, REPLAN = "off", "parity", "replan"
MODES = (OFF, PARITY, REPLAN)
#: Longest sleep, seconds.
SLEEP_S = 0.05
#: A reply to an observation older than this is of no use for a comparison, seconds.
PARITY_DEADLINE_S = 10.0
NOT_REPLAN = Decision(Source.LOCAL, "not_replan", "the mode is not replan", 0.0)


@dataclass(frozen=True)
class Tag:
    """Of a request. :param era: of the mode, the sentence and the clock that it was made in."""

    seen: Seen
    era: int
    same_noise: bool = False


@dataclass(frozen=True)
class WorkReport:
    """What the thread leaves for the executor's; replaced as a whole, never changed."""

    mode: str = OFF
    active: bool = False
    source: str = ""
    decision: Decision = NOT_REPLAN
    observation_text: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    last_drop: str = ""
    offered: int = 0
    unpaired: int = 0
    parity: tuple[int, np.ndarray, np.ndarray] | None = None


class Work:
    """One step after the other, in the bridge's thread; `begin` and `end` when it does not run."""

    def __init__(self, node: Any) -> None:
        """:param node: an `OpenpiBridge`, as far as it is configured."""
        self._node, self._senses, self._maker = node, node.senses, node.maker
        self._arbiter = Arbiter(node.mapping.replan)
        self._deadline_s = node.mapping.replan.deadline_s
        self._meter = ParityMeter()
        self._dropped: Counter[str] = Counter()
        self._era = self._offered = self._unpaired = 0
        self._mode, self._last_drop, self._preferred = "", "", ""
        self.report = WorkReport()

    def begin(self) -> None:
        self._simulated = self._node.get_parameter("use_sim_time").value
        self._last_ns, self._asked_s = 0, -1e9
        self._mode = ""
        self._sentence_ns = 0
        self._hungry = False
        self._episode_s = time.monotonic() if self._senses.sentence else None
        self._new_era()
        for _ in self._node.heard.take(most=64):
            pass  # from before: nothing to act on

    def end(self) -> None:
        """Say that the remote is nobody to follow."""
        self._let_go()
        self.report = WorkReport(dropped=dict(self._dropped), offered=self._offered)

    def _new_era(self) -> None:
        """Whatever is known or under way belongs to a past mode or clock."""
        self._era += 1
        self._local_ns: int | None = None
        self._unplayable: Reason | None = None  # why the last reply was not
        self._arbiter.forget()
        self._meter.clear()
        self._senses.reset()

    def _new_sentence(self, now_ns: int) -> None:
        self._era += 1
        self._meter.clear()
        self._sentence_ns, self._episode_s = now_ns, time.monotonic()
        self._asked_s = -1e9  # the next observation is due at once
        self._node.remote.reset()

    def step(self) -> None:
        """Do what there is to do, then wait a moment."""
        node, now_ns = self._node, self._node.get_clock().now().nanoseconds
        if now_ns < self._last_ns:
            node.get_logger().warning(
                f"the clock went back by {(self._last_ns - now_ns) * 1e-9:.3f} s: starting anew")
            self._new_era()
        self._last_ns = now_ns
        self._follow_mode()
        if self._senses.hear():
            self._new_sentence(now_ns)
        decision = NOT_REPLAN
        if self._mode != OFF and now_ns > 0:
            if self._mode == PARITY:
                self._senses.take_in(now_ns, self._simulated)
            self._hear_chunks(now_ns)
            outcomes = node.remote.outcomes()
            if self._mode == REPLAN:
                decision = self._decide(now_ns)
            for outcome in outcomes:
                self._take(outcome, decision, now_ns)
            if self._mode == REPLAN:
                self._ask(decision, now_ns)
        else:
            for _ in node.heard.take(most=64):
                pass
        remote = decision.source is Source.REMOTE
        if remote:
            self._prefer(node.source)
        else:
            self._let_go()
        self.report = WorkReport(
            self._mode, True, node.source if remote else node.local_source, decision,
            self._lack(), dict(self._dropped), self._last_drop, self._offered, self._unpaired, self._meter.summary())
        heard = () if self._mode == OFF else (node.heard,)
        wants = self._mode == PARITY or (self._mode == REPLAN and self._hungry)
        node.waiter.wait((*heard, *self._senses.news(pictures=wants)), SLEEP_S)

    def _lack(self) -> str:
        if self._mode == OFF:
            return ""
        if self._senses.sentence:
            return self._senses.text
        return self._senses.sentence_fault or "no instruction yet"

    def _follow_mode(self) -> None:
        mode = self._node.mode
        if mode == self._mode:
            return
        self._mode = mode
        self._node.get_logger().info(f"mode: {mode}")
        self._new_era()
        if mode != REPLAN:
            # First of all: ending a link may take seconds.
            self._let_go()
        if mode == OFF:
            self._node.remote.stop()
        else:
            self._node.remote.start()

    def _prefer(self, source: str) -> None:
        if source != self._preferred:
            self._preferred = source
            self._node.preferences.publish(String(data=source))

    def _let_go(self) -> None:
        """Let the local policy take over again, where the remote had."""
        if self._preferred == self._node.source:
            self._prefer(self._node.local_source)

    def _drop(self, code: str, text: str) -> None:
        self._dropped[code] += 1
        self._last_drop = f"{code}: {text}"

    # -- replan --------------------------------------------------------------------------------

    def _decide(self, now_ns: int) -> Decision:
        link, now = self._node.remote.status(), time.monotonic()
        local_s = None if self._local_ns is None else max(0.0, (now_ns - self._local_ns) * 1e-9)
        episode_s = None if self._episode_s is None else now - self._episode_s
        return self._arbiter.decide(Moment(
            now, link.state, link.reason, local_s, episode_s, self._node.demanded,
            self._unplayable))

    def _ask(self, decision: Decision, now_ns: int) -> None:
        now = time.monotonic()
        self._hungry = False
        if (not decision.ask_every_s or now - self._asked_s < decision.ask_every_s
                or not self._senses.sentence or self._node.remote.status().waiting):
            return
        self._senses.take_in(now_ns, self._simulated)
        seen = self._senses.pick(now_ns, self._simulated)
        if seen is None:
            self._hungry = True
            return
        self._asked_s = now
        rest_s = self._deadline_s - (now_ns - seen.stamp_ns) * 1e-9
        self._node.remote.request(seen.message, deadline=now + rest_s, tag=Tag(seen, self._era))

    def _take(self, outcome: Any, decision: Decision, now_ns: int) -> None:
        if outcome.code != "good":
            if self._mode == PARITY:
                self._unpaired += 1
            return  # counted, and its reason kept, by the link
        tag: Tag = outcome.tag
        if tag.era != self._era:
            self._drop("past", "the mode, the sentence or the clock has changed since")
            return
        try:
            rows = self._maker.rows(outcome, tag.seen.positions)
            self._unplayable = None
            if self._mode == PARITY:
                self._compare(self._meter.remote(
                    tag.seen.stamp_ns, self._maker.absolute(rows, tag.seen.positions),
                    self._maker.period_s), tag.same_noise)
            elif decision.source is Source.REMOTE:
                self._offer(rows, tag.seen, now_ns)
            else:
                self._dropped["not_followed"] += 1
        except Unplayable as error:
            self._drop(error.code, str(error))
            self._unplayable = Reason(error.code, str(error))
            self._node.get_logger().warning(
                f"a reply of the remote policy is dropped, {error.code}: {error}",
                throttle_duration_sec=5.0)

    def _offer(self, rows: np.ndarray, seen: Seen, now_ns: int) -> None:
        age_s = (now_ns - seen.stamp_ns) * 1e-9
        if age_s > self._deadline_s:
            text = f"its observation is {age_s:.2f} s old, limit {self._deadline_s:g} s"
            self._drop("late", text)
            self._unplayable = Reason("late", text)
            return
        self._node.chunks.publish(self._maker.chunk(
            rows, seen.stamp_ns, seen.positions, next(self._node.numbers)))
        self._offered += 1

    # -- the local policy's chunks, and parity -------------------------------------------------

    def _hear_chunks(self, now_ns: int) -> None:
        for message in self._node.heard.take():
            if message.source != self._node.local_source:
                continue
            stamp_ns = to_ns(message.header.stamp)
            self._local_ns = max(stamp_ns, self._local_ns or 0)
            if self._mode == PARITY and stamp_ns >= self._sentence_ns:
                self._hear_local(message, stamp_ns, now_ns)

    def _hear_local(self, message: ActionChunk, stamp_ns: int, now_ns: int) -> None:
        """Ask the remote for the same, if it has nothing else to do."""
        link = self._node.remote.status()
        if link.waiting or link.state not in (State.WARMING, State.ACTIVE, State.DEGRADED):
            return
        chunk = chunk_from_message(message, self._node.robot, now_ns)
        if isinstance(chunk, Refusal):
            self._drop("local", chunk.text)
            return
        seen = self._senses.at(stamp_ns, now_ns, self._simulated)
        if seen is None:
            self._unpaired += 1
            return
        drawn, same = drawing(
            link.metadata or {}, link.dialect, seed=message.noise_seed, stamp_ns=stamp_ns)
        request = {**seen.message, **drawn}
        self._compare(self._meter.local(stamp_ns, chunk.values, chunk.dt_ns * 1e-9), same)
        self._node.remote.request(request, deadline=time.monotonic() + PARITY_DEADLINE_S,
                                  tag=Tag(seen, self._era, same))

    def _compare(self, difference: Difference | None, same_noise: bool) -> None:
        if difference is None:
            return
        robot = self._node.robot
        message = ChunkDifference(
            source=self._node.source, joint_names=list(robot.joint_names),
            joint_units=[joint.unit for joint in robot.joints], rows=len(difference.gap),
            differences=array("d", np.ascontiguousarray(difference.gap, np.float64).tobytes()),
            dt=duration_message(round(self._maker.period_s * 1e9)), same_noise=same_noise)
        message.header.stamp = time_message(difference.stamp_ns)
        self._node.differences.publish(message)
