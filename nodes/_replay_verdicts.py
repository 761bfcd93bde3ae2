# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the graph decided from what it was shown, put beside what was recorded, round by round."""

from __future__ import annotations

import time
from typing import Callable, Iterable

from omni_ros.msg import ActionChunk, StageRecord
from omni_ros.nodes._support import to_ns
from omni_ros.replay.live import STAGES, Expectation, judge, unanswered
from omni_ros.replay.plans import Plan
from omni_ros.replay.verdict import ChunkVerdict, Kind, Tally

#: How long the records of an observation may come after its chunk, seconds.
RECORDS_S = 1.0
#: Verdicts that a loop without end keeps; those that are the same go first.
KEPT = 2000


class Verdicts:
    """Takes chunks and records as they come, and gives a verdict on each observation shown."""

    def __init__(self, plans: Iterable[Plan], lost: Iterable[Plan], expected: Expectation,
                 say: Callable[[int, ChunkVerdict], None]) -> None:
        """:param plans: that can be shown. :param lost: that cannot. :param say: told each verdict."""
        self._plans = {plan.chunk.stamp_ns: plan for plan in plans}
        self._lost, self._expected, self._say = list(lost), expected, say
        self.tally = Tally()
        #: Verdicts of each round that has ended, counted by kind.
        self.rounds: list[dict[str, int]] = []
        self.round = 0
        self._mine = Tally()
        self._open: dict[int, Plan] = {}
        self._chunks: dict[int, tuple[float, ActionChunk]] = {}
        self._records: dict[int, dict[str, StageRecord]] = {}

    @property
    def waiting(self) -> bool:
        """Whether something shown is not judged yet."""
        return bool(self._open)

    def begin(self, number: int) -> None:
        """Begin a round; the one before has ended."""
        self.end()
        self.round, self._mine = number, Tally()
        for plan in self._lost:
            self._conclude(unanswered(
                plan, f"not in the bag: {'; '.join(plan.missing) or 'any picture'}"))

    def end(self) -> str:
        """End the round; return it in a line, "" if there was none."""
        if not self.round:
            return ""
        self.look(all_of_them=True)
        for plan in list(self._open.values()):
            self.give_up(plan, "the round ended before its chunk came")
        self._chunks.clear()
        self._records.clear()
        self.rounds.append(self._mine.counts)
        text, self.round = f"round {self.round}: {self._mine.text()}", 0
        if len(self.tally.verdicts) > KEPT:
            self.tally.verdicts.sort(key=lambda one: one.kind is Kind.SAME)
            del self.tally.verdicts[KEPT:]
        return text

    def shown(self, plan: Plan) -> None:
        self._open[plan.chunk.stamp_ns] = plan

    def chunk(self, message: ActionChunk) -> bool:
        """Take a chunk; whether it is of something that was shown and not answered."""
        stamp_ns = to_ns(message.header.stamp)
        if stamp_ns not in self._open or stamp_ns in self._chunks:
            return False
        self._chunks[stamp_ns] = time.monotonic(), message
        return True

    def record(self, message: StageRecord) -> bool:
        """Take a stage's record; whether it is of something that was shown and not judged."""
        stamp_ns = to_ns(message.header.stamp)
        if stamp_ns not in self._open or message.stage not in STAGES:
            return False
        self._records.setdefault(stamp_ns, {})[message.stage] = message
        return True

    def knows(self, message: ActionChunk) -> bool:
        """Whether a chunk is of an observation of the bag."""
        return to_ns(message.header.stamp) in self._plans

    def look(self, *, all_of_them: bool = False) -> None:
        """Judge what is complete, or will not become so; or all that has a chunk."""
        now_s = time.monotonic()
        for stamp_ns, (came_s, chunk) in list(self._chunks.items()):
            records = self._records.get(stamp_ns, {})
            if all_of_them or len(records) == len(STAGES) or now_s - came_s > RECORDS_S:
                plan = self._close(stamp_ns)
                self._conclude(judge(plan, chunk, records, self._expected))

    def give_up(self, plan: Plan, why: str) -> None:
        """No chunk will come of it."""
        if plan.chunk.stamp_ns in self._open:
            self._close(plan.chunk.stamp_ns)
            self._conclude(unanswered(plan, why))

    def _close(self, stamp_ns: int) -> Plan:
        self._chunks.pop(stamp_ns, None)
        self._records.pop(stamp_ns, None)
        return self._open.pop(stamp_ns)

    def _conclude(self, verdict: ChunkVerdict) -> None:
        self.tally.add(verdict)
        self._mine.add(verdict)
        self._say(self.round, verdict)
