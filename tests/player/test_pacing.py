# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Deadlines of the tick."""

from __future__ import annotations

from omni_ros.player.pacing import SimPacer, WallPacer

PERIOD = 20_000_000


class Machine:
    """A clock that moves only when someone sleeps or works."""

    def __init__(self) -> None:
        self.now = 1_000

    def monotonic_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


def wall(machine: Machine) -> WallPacer:
    return WallPacer(PERIOD, machine.monotonic_ns, machine.sleep)


def test_work_done_in_a_tick_does_not_shift_later_deadlines():
    machine = Machine()
    pacer = wall(machine)
    start = machine.now
    for _ in range(100):
        pacer.wait()
        machine.now += 7_000_000
    pacer.wait()
    assert machine.now == start + 101 * PERIOD


def test_a_tick_that_comes_late_says_how_late():
    machine = Machine()
    pacer = wall(machine)
    pacer.wait()
    machine.now += PERIOD + 3_000_000
    assert pacer.wait() == 3_000_000


def test_deadlines_slept_through_are_skipped_not_caught_up_in_a_burst():
    machine = Machine()
    pacer = wall(machine)
    pacer.wait()
    machine.now += 5 * PERIOD + 1_000_000
    assert pacer.wait() == 4 * PERIOD + 1_000_000
    before = machine.now
    pacer.wait()
    assert machine.now - before == PERIOD - 1_000_000


class SimClock:
    """A clock that advances by `step` nanoseconds whenever someone sleeps."""

    def __init__(self, now: int, step: int) -> None:
        self.now, self.step = now, step

    def read(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += self.step


def test_a_simulated_clock_that_has_not_started_gives_no_tick():
    clock = SimClock(0, 0)
    assert SimPacer(PERIOD, clock.read, sleep=clock.sleep).wait() is None


def test_a_simulated_clock_that_starts_late_in_life_is_not_late():
    clock = SimClock(10**18, 0)
    assert SimPacer(PERIOD, clock.read, sleep=clock.sleep).wait() == 0


def test_a_paused_simulated_clock_gives_no_second_tick():
    clock = SimClock(10**18, 0)
    pacer = SimPacer(PERIOD, clock.read, sleep=clock.sleep)
    pacer.wait()
    assert pacer.wait() is None


def test_a_simulated_clock_ticks_once_each_period_of_its_own():
    clock = SimClock(10**18, 1_000_000)
    pacer = SimPacer(PERIOD, clock.read, sleep=clock.sleep)
    times = []
    for _ in range(5):
        pacer.wait(give_up_s=10.0)
        times.append(clock.now)
    assert [b - a for a, b in zip(times, times[1:])] == [PERIOD] * 4


def test_a_simulated_clock_set_back_ticks_again_at_once():
    clock = SimClock(10**18, 0)
    pacer = SimPacer(PERIOD, clock.read, sleep=clock.sleep)
    pacer.wait()
    clock.now = 5 * 10**17
    assert pacer.wait() is not None
