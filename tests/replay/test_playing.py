# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""When a recording's parts are published, in simulated time."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros.replay.contents import Joints, Picture
from omni_ros.replay.plans import Plan, Wanted
from omni_ros.replay.playing import LATEST_NS, Joint, Playback, Say, Show, Timetable

MS = 1_000_000
START = 5_000_000_000_000
STEP = 5 * MS


def plan(number: int, at_ns: int, sentence: str = "go", positions=(0.5,), missing=()) -> Plan:
    chunk = SimpleNamespace(chunk_id=number, stamp_ns=at_ns, values=np.zeros((2, 1)),
                            log_ns=at_ns + 60 * MS)
    return Plan(chunk, instruction=sentence, wanted=(Wanted("eye", "/eye", at_ns),),
                positions=dict(zip(["a"], positions)), missing=list(missing))


def table(*times_ms: int, sentences=None, missing=()) -> Timetable:
    plans = [plan(number, START + at * MS, (sentences or {}).get(number, "go"),
                  missing=["it"] if number in missing else ())
             for number, at in enumerate(times_ms)]
    joints = [Joints(("a",), np.array([float(at)]), np.array([]), START + at * MS, START + at * MS)
              for at in range(0, max(times_ms) + 100, 20)]
    contents = SimpleNamespace(
        joints=joints, bag=SimpleNamespace(path="bag"),
        pictures={"/eye": [Picture(one.chunk.stamp_ns, one.chunk.stamp_ns + 10 * MS)
                           for one in plans]})
    return Timetable(contents, plans)


class Policy:
    """Takes what it is shown after a time, and answers after another, by the machine's clock."""

    def __init__(self, playback: Playback, takes_ms: float, due_ns=lambda stamp: 0) -> None:
        self.playback, self.takes = playback, takes_ms * MS
        self.log, self.clock, self.mono = [], [], 0
        self.answers: dict[int, int] = {}
        self._busy: list[tuple[int, int]] = []
        self._wanted: list[int] = []
        self._due = due_ns

    def run(self, ms: int = 60_000) -> "Policy":
        for _ in range(ms * MS // STEP):
            self.mono += STEP
            for what in self.playback.step(self.mono):
                self.log.append((self.playback.now_ns, what))
                if isinstance(what, Show):
                    self._wanted.append(what.plan.chunk.stamp_ns)
            self.clock.append(self.playback.now_ns)
            for stamp in [s for s in self._wanted if self.playback.now_ns >= self._due(s)]:
                self._wanted.remove(stamp)
                self._busy.append((self.mono + self.takes, stamp))
                self.playback.taken(stamp)
            for done, stamp in [one for one in self._busy if one[0] <= self.mono]:
                self._busy.remove((done, stamp))
                self.playback.answered(stamp)
                self.answers[stamp] = self.playback.now_ns
            if self.playback.finished:
                break
        return self

    def shown(self) -> list[int]:
        return [what.plan.chunk.chunk_id for _, what in self.log if isinstance(what, Show)]


def test_every_observation_is_shown_once_and_in_order():
    policy = Policy(Playback(table(0, 500, 1000)), takes_ms=50).run()
    assert policy.shown() == [0, 1, 2] and policy.playback.finished


def test_the_positions_that_were_used_come_with_the_stamp_of_the_observation_before_its_pictures():
    policy = Policy(Playback(table(1000, 1500)), takes_ms=50).run()
    kinds = [what for _, what in policy.log]
    for number, show in ((at, what) for at, what in enumerate(kinds) if isinstance(what, Show)):
        before = [one for one in kinds[:number] if isinstance(one, Joint)
                  and one.stamp_ns == show.plan.chunk.stamp_ns and list(one.positions) == [0.5]]
        assert len(before) >= 1


def test_the_positions_are_sent_again_until_they_are_taken():
    due = {START: START, START + 300 * MS: START + 700 * MS, START + 900 * MS: START}
    policy = Policy(Playback(table(0, 300, 900)), takes_ms=20, due_ns=due.__getitem__).run()
    sent = [at for at, what in policy.log
            if isinstance(what, Joint) and what.stamp_ns == START + 300 * MS
            and list(what.positions) == [0.5]]
    assert len(sent) >= 3 and max(sent) < START + 730 * MS


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0, 5.0])
def test_the_rate_is_that_of_the_clock(rate):
    policy = Policy(Playback(table(0, 500, 1000, 3000), rate=rate), takes_ms=1).run()
    moving = np.diff(policy.clock)
    moving = moving[moving > 0]
    assert np.median(moving) == STEP * rate


def test_no_chunk_comes_later_than_it_did_then_however_slow_the_policy():
    policy = Policy(Playback(table(0, 500, 1000), rate=2.0), takes_ms=700).run()
    assert policy.shown() == [0, 1, 2] and not policy.playback.given_up
    assert policy.playback.stood_s > 1.5
    assert len(policy.answers) == 3
    for stamp, at_ns in policy.answers.items():
        assert at_ns <= stamp + 60 * MS + 2 * STEP
    for at_ns, what in policy.log:
        if isinstance(what, Show):
            assert 0 <= at_ns - what.plan.chunk.stamp_ns < 40 * MS


def test_the_clock_goes_on_for_a_policy_that_waits_for_its_time():
    due = {START: START, START + 300 * MS: START + 450 * MS, START + 600 * MS: START + 700 * MS}
    policy = Policy(Playback(table(0, 300, 600)), takes_ms=20, due_ns=due.__getitem__).run()
    assert policy.shown() == [0, 1, 2]
    assert not policy.playback.given_up and policy.playback.stood_s < 0.1


def test_the_clock_stands_for_a_policy_that_is_overdue_although_it_has_not_said_that_it_began():
    due = {START: START, START + 300 * MS: START + 10**18, START + 600 * MS: START}
    playback = Playback(table(0, 300, 600), horizon_ns=400 * MS, patience_s=3.0)
    policy = Policy(playback, takes_ms=20, due_ns=due.__getitem__).run()
    assert policy.shown() == [0, 1, 2]
    at_ns = next(at for at, what in policy.log if isinstance(what, Show)
                 and what.plan.chunk.chunk_id == 2)
    assert at_ns - (START + 600 * MS) < 40 * MS and playback.stood_s > 2.0


def test_a_set_is_shown_before_it_is_too_old_for_a_policy_that_does_not_take_the_one_before():
    never = {START: START, START + 300 * MS: 2 * START, START + 600 * MS: START}
    policy = Policy(Playback(table(0, 300, 600)), takes_ms=20, due_ns=never.__getitem__)
    policy.run()
    assert policy.shown() == [0, 1, 2]
    assert [one.chunk.chunk_id for one in policy.playback.given_up] == [1]
    at_ns = next(at for at, what in policy.log if isinstance(what, Show)
                 and what.plan.chunk.chunk_id == 2)
    assert at_ns - (START + 600 * MS) < LATEST_NS + 50 * MS


def test_a_chunk_that_never_comes_is_given_up():
    policy = Policy(Playback(table(0, 500), patience_s=2.0), takes_ms=1e9).run()
    assert policy.shown() == [0, 1] and policy.playback.finished
    assert [one.chunk.chunk_id for one in policy.playback.given_up] == [0, 1]


def test_in_real_time_nothing_is_waited_for():
    policy = Policy(Playback(table(0, 200, 400), wait=False), takes_ms=700).run()
    times = [at for at, what in policy.log if isinstance(what, Show)]
    assert policy.playback.stood_s == 0.0
    assert np.allclose(np.diff(times), 200 * MS, atol=2 * STEP)


def test_a_machine_that_was_busy_does_not_make_the_clock_leap():
    playback = Playback(table(0, 500, 1000))
    playback.step(1)
    playback.step(1 + 600 * MS)
    before = playback.now_ns
    playback.step(1 + 1600 * MS)
    assert playback.now_ns - before == 50 * MS


def test_a_loop_goes_back_to_the_beginning_and_stands_there():
    policy = Policy(Playback(table(0, 500), rounds=3), takes_ms=30).run()
    clock = np.array(policy.clock)
    jumps = np.flatnonzero(np.diff(clock) < 0)
    assert policy.shown() == [0, 1] * 3 and len(jumps) == 2
    for at in jumps:
        assert (clock[at + 1:at + 50] == clock[at + 1]).all()


def test_a_sentence_is_said_when_it_changes_and_before_the_pictures_it_is_for():
    policy = Policy(Playback(table(0, 500, 1000, sentences={1: "stop there", 2: "stop there"})),
                    takes_ms=30).run()
    said = [(type(what), getattr(what, "text", None) or what.plan.chunk.chunk_id)
            for _, what in policy.log if not isinstance(what, Joint)]
    assert said == [(Say, "go"), (Show, 0), (Say, "stop there"), (Show, 1), (Show, 2)]


def test_a_pause_stops_the_clock_and_everything_with_it():
    playback = Playback(table(0, 500, 1000))
    policy = Policy(playback, takes_ms=30).run(700)
    playback.paused = True
    count, now = len(policy.log), playback.now_ns
    policy.run(500)
    assert (len(policy.log), playback.now_ns) == (count, now)
    playback.paused = False
    assert policy.run().shown() == [0, 1, 2]


def test_what_lacks_a_picture_is_not_shown():
    policy = Policy(Playback(table(0, 500, 1000, missing={1})), takes_ms=30).run()
    assert policy.shown() == [0, 2]


def test_a_recording_without_one_whole_observation_is_refused():
    with pytest.raises(ValueError, match="nothing to show"):
        table(0, 500, missing={0, 1})
