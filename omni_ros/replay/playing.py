# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""When to publish what of a recording, so that a running graph decides from what was decided from then.

A policy picks the newest pictures that belong together when its next observation is due, and when that is
follows from how long it takes. So that it picks the same ones again, whatever the rate and the machine:

- it gets no other pictures than those an observation used, each set only after the chunk of the one
  before has come;
- it gets the joint positions that were used as a sample of the observation's own stamp, which no other
  one can be nearer to; again and again until it has taken them, since it keeps only the last few;
- while it computes, the clock does not pass the time at which the recorded chunk came: so the player does
  not wait for one longer than it did then. The clock does not stand for a policy that is still waiting for
  the time of its next observation, which is known from its pace.

A jump back to the beginning is a standstill there, long enough for every node to notice. Free of ROS; for
one thread. Times are nanoseconds: of the recording, or of the machine's monotonic clock (`mono`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from omni_ros.replay.contents import Contents, Joints
from omni_ros.replay.plans import Plan, picture_words

#: The clock stands so long before anything is published: at the start and after a jump, seconds.
SETTLE_S = 0.4
#: And so long after a new sentence.
SPEAK_S = 0.15
#: Without the chunk of an observation for so long, of the machine, it is given up.
PATIENCE_S = 10.0
#: A set that waits for the chunk before it goes out at this age at the latest: older ones are stale.
LATEST_NS = 250_000_000
#: A policy whose observation is due waits for newer pictures no longer than this, and some clock steps.
PATIENT_NS = 100_000_000 + 50_000_000
#: If it has not taken what it was shown when the clock stood so long, it is not due after all, seconds.
OVERDUE_S = 5.0
#: The clock goes on by no more than this at once: a machine that was busy must not make it leap.
LEAP_NS = 50_000_000
#: Other joint states after which the one that is to be used is sent again.
AGAIN_AFTER = 5


@dataclass(frozen=True)
class Say:
    """A sentence to be published."""

    text: str


@dataclass(frozen=True)
class Joint:
    """A joint state to be published; `stamp_ns` is its stamp."""

    names: tuple[str, ...]
    positions: Sequence[float]
    velocities: Sequence[float]
    stamp_ns: int


@dataclass(frozen=True)
class Show:
    """The pictures of an observation, to be published together."""

    plan: Plan


@dataclass(frozen=True)
class Timed:
    """What happens at a time of the recording."""

    at_ns: int
    what: Joints | Plan


class Timetable:
    """What there is to publish, in order."""

    def __init__(self, contents: Contents, plans: Iterable[Plan]) -> None:
        """:param plans: of the chunks that are to be decided again; those that lack something are
        left out. :raises ValueError: none is left."""
        plans = list(plans)
        stamps = {topic: {picture.stamp_ns for picture in pictures}
                  for topic, pictures in contents.pictures.items()}
        for plan in plans:
            absent = [picture_words(wanted.camera, wanted.stamp_ns) for wanted in plan.wanted
                      if wanted.stamp_ns not in stamps.get(wanted.topic, ())]
            plan.missing += [words for words in absent if words not in plan.missing]
        self.plans = [plan for plan in plans if not plan.missing and plan.wanted]
        if not self.plans:
            raise ValueError(
                f"{contents.bag.path} holds no observation that is whole: there is nothing to show. "
                "`omni replay` lists what is missing")
        shown = [Timed(_came_ns(contents, plan), plan) for plan in self.plans]
        moved = [Timed(joints.log_ns, joints) for joints in contents.joints]
        #: Sorted by time; of one instant joints come first.
        self.events: list[Timed] = sorted(
            [*moved, *shown], key=lambda one: (one.at_ns, isinstance(one.what, Plan)))
        first = shown[0].at_ns
        # What was long before the first observation tells a player nothing: a second is enough.
        self.start_ns = max(self.events[0].at_ns, min(first, first - 1_000_000_000))
        self.events = [one for one in self.events if one.at_ns >= self.start_ns]
        self.end_ns = self.events[-1].at_ns


def _came_ns(contents: Contents, plan: Plan) -> int:
    """Return when the last picture of an observation was received, by the bag."""
    times = []
    for wanted in plan.wanted:
        found = [picture.log_ns for picture in contents.pictures.get(wanted.topic, ())
                 if picture.stamp_ns == wanted.stamp_ns]
        times.append(min(found, default=wanted.stamp_ns))
    return max([*times, plan.chunk.stamp_ns])


class Playback:
    """Goes through a timetable.

    :ivar now_ns: what the clock says. :ivar round: 1, 2, ... of a loop. :ivar stood_s: seconds of the
        machine that the clock stood for the policy. :ivar finished: after the last round.
    """

    def __init__(self, timetable: Timetable, *, rate: float = 1.0, rounds: int = 1,
                 wait: bool = True, patience_s: float = PATIENCE_S, horizon_ns: int | None = None
                 ) -> None:
        """
        :param rounds: 0 for ever. :param wait: for each chunk; else in real time, whatever is missed.
        :param horizon_ns: the policy's next observation is due so long after the last one at the
            latest; None if that is not known.
        """
        self._horizon_ns = horizon_ns
        self._table, self._rounds, self._wait = timetable, rounds, wait
        self._patience_ns = round(patience_s * 1e9)
        self.rate, self.paused, self.finished = rate, False, False
        self.round, self.stood_s = 0, 0.0
        self._mono: int | None = None
        self._sentence: str | None = None
        self._begin()

    def _begin(self) -> None:
        self.round += 1
        self.now_ns = self._table.start_ns
        self._standing_ns = round(SETTLE_S * 1e9)
        self._next = 0
        self._held: deque[Timed] = deque()
        self._due: list[Any] = []  # to go out at the next step
        self._shown: Plan | None = None  # whose chunk has not come
        self._taken = False
        self._due_ns: int | None = 0  # when it is taken at the latest
        self._used: Joint | None = None  # until it is taken
        self._since_used = 0
        self._stood_ns = 0
        self._last_ns: int | None = None  # stamp of the last one whose chunk came
        self._waited_ns = 0
        #: Observations of this round of which no chunk came in time.
        self.given_up: list[Plan] = []

    def taken(self, stamp_ns: int) -> None:
        """The policy has picked an observation."""
        if self._shown is not None and self._shown.chunk.stamp_ns == stamp_ns:
            self._taken, self._used = True, None

    def answered(self, stamp_ns: int) -> None:
        """The chunk of an observation came."""
        if self._shown is not None and self._shown.chunk.stamp_ns == stamp_ns:
            self._shown, self._last_ns, self._used = None, stamp_ns, None

    @property
    def waits(self) -> bool:
        """Whether the chunk of what was shown last has still to come."""
        return self._shown is not None

    def step(self, mono_ns: int) -> list[Say | Joint | Show]:
        """Let time pass; return what to publish now, in order, before the clock."""
        passed, self._mono = mono_ns - (self._mono or mono_ns), mono_ns
        if self.paused or self.finished:
            return []
        if self._standing_ns > 0:
            self._standing_ns -= passed
            return []
        out, self._due = self._due, []
        self._look_after_waiting(passed)
        if self._held and self._shown is None and not out:
            out += self._show(self._held.popleft())
        ahead_ns = round(passed * self.rate)
        if self._wait:
            ahead_ns = min(ahead_ns, LEAP_NS)
        if self._wait and self._shown is not None and self._computes:
            room_ns = max(0, self._shown.chunk.log_ns - self.now_ns)
            if room_ns < ahead_ns:
                self.stood_s += passed * 1e-9
                self._stood_ns += passed
                ahead_ns = room_ns
        self.now_ns += ahead_ns
        events = self._table.events
        while self._next < len(events) and events[self._next].at_ns <= self.now_ns:
            event = events[self._next]
            self._next += 1
            if isinstance(event.what, Joints):
                joints = event.what
                out.append(Joint(joints.names, joints.positions, joints.velocities,
                                 joints.stamp_ns or joints.log_ns))
                self._since_used += 1
                if self._used is not None and self._since_used >= AGAIN_AFTER:
                    out.append(self._used)
                    self._since_used = 0
            elif self._held or self._due or (self._wait and self._shown is not None):
                self._held.append(event)
            else:
                out += self._show(event)
        if self._next == len(events) and not self._held and not self._due and self._shown is None:
            self._end_round()
        return out

    @property
    def _computes(self) -> bool:
        """Whether the policy has to be at work on what was shown last."""
        due = self._due_ns is not None and self.now_ns >= self._due_ns
        return self._taken or due and self._stood_ns < OVERDUE_S * 1e9

    def _look_after_waiting(self, passed_ns: int) -> None:
        """Give up an answer that does not come, or that makes what follows too old."""
        if self._shown is None:
            return
        self._waited_ns += passed_ns
        too_old = bool(self._held) and not self._computes and (
            self.now_ns - self._held[0].at_ns > LATEST_NS)
        if self._waited_ns > self._patience_ns or too_old or not self._wait and self._held:
            self.given_up.append(self._shown)
            self._shown = None

    def _show(self, event: Timed) -> list[Say | Joint | Show]:
        """Return what goes out at once; what must not overtake it goes out with the next step."""
        plan = event.what
        self._shown, self._taken, self._waited_ns, self._stood_ns = plan, False, 0, 0
        out: list[Say | Joint | Show] = []
        if plan.instruction and plan.instruction != self._sentence:
            self._sentence = plan.instruction
            out.append(Say(plan.instruction))
            self._standing_ns = round(SPEAK_S * 1e9)
            self._last_ns = None
        if self._last_ns is None:
            self._due_ns = self.now_ns
        else:
            self._due_ns = None if self._horizon_ns is None else self._last_ns + self._horizon_ns
            if self._due_ns is not None and plan.chunk.stamp_ns < self._due_ns:
                self._due_ns += PATIENT_NS
        if plan.positions and not plan.derived:
            names = tuple(plan.positions)
            self._used = Joint(names, [plan.positions[name] for name in names], (),
                               plan.chunk.stamp_ns)
            self._since_used = 0
            out.append(self._used)
        self._due.append(Show(plan))
        return out

    def _end_round(self) -> None:
        if self._rounds and self.round >= self._rounds:
            self.finished = True
        else:
            self._begin()
