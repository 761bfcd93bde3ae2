# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""When a recorded player ticked, from its status or from the times of its commands."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from omni_ros.replay.player_ticks import Tick, arrivals, ticks_of

PERIOD = 20_000_000
BEGIN = 1_700_000_000_000_000_000


def stamp(at: int) -> SimpleNamespace:
    return SimpleNamespace(sec=at // 1_000_000_000, nanosec=at % 1_000_000_000)


def status(tick: int, at: int, commands: int, position: float, *, missed: int = 0,
           **more) -> SimpleNamespace:
    fields = {"chunk_id": 0, "chunk_age": float("nan"), "source": "local",
              "observation_stamp": stamp(0), "ticks_missed": missed}
    return SimpleNamespace(
        header=SimpleNamespace(stamp=stamp(at)), ticks=tick, commands=commands,
        command_position=np.array([position]), command_velocity=np.array([0.0]), **{**fields, **more})


def commands(count: int, late: int = 0) -> list[tuple[int, np.ndarray]]:
    return [(BEGIN + number * PERIOD + late, np.array([0.01 * number ** 1.1])) for number in range(count)]


def test_a_status_tells_a_tick_to_the_nanosecond_however_late_its_command_was_recorded():
    sent = commands(11, late=150_000_000)
    told = [status(tick=at + 1, at=BEGIN + at * PERIOD, commands=at + 1, position=sent[at][1][0])
            for at in (0, 5, 10)]
    ticks, known = ticks_of(sent, told, PERIOD)
    assert known
    assert ticks == [Tick(BEGIN + at * PERIOD, at) for at in range(1, 11)]


def test_a_recording_that_begins_late_is_matched_by_the_commands_on_the_statuses():
    sent = commands(11)[4:]
    told = [status(tick=101 + at, at=BEGIN + at * PERIOD, commands=91 + at, position=0.01 * at ** 1.1)
            for at in (5, 10)]
    ticks, known = ticks_of(sent, told, PERIOD)
    assert known and [tick.command for tick in ticks] == [2, 3, 4, 5, 6]


def test_ticks_before_a_change_of_state_gave_no_command():
    sent = commands(6)
    told = [status(tick=10, at=BEGIN - 5 * PERIOD, commands=0, position=float("nan")),
            status(tick=16, at=BEGIN + PERIOD, commands=2, position=sent[1][1][0]),
            status(tick=20, at=BEGIN + 5 * PERIOD, commands=6, position=sent[5][1][0])]
    ticks, known = ticks_of(sent, told, PERIOD)
    assert known
    assert [tick.command for tick in ticks] == [None] * 4 + [0, 1, 2, 3, 4, 5]


def test_a_missed_deadline_lies_where_a_command_went_twice_as_far():
    way = [0.0, 0.01, 0.02, 0.04, 0.05, 0.06, 0.07]
    sent = [(BEGIN + number * PERIOD, np.array([value])) for number, value in enumerate(way)]
    told = [status(tick=1, at=BEGIN, commands=1, position=way[0]),
            status(tick=6, at=BEGIN + 6 * PERIOD, commands=6, position=way[5], missed=1),
            status(tick=7, at=BEGIN + 7 * PERIOD, commands=7, position=way[6], missed=1)]
    ticks, _ = ticks_of(sent, told, PERIOD)
    periods = [round((tick.now_ns - BEGIN) / PERIOD, 3) for tick in ticks]
    assert periods == [1.0, 2.0, 4.0, 5.0, 6.0, 7.0]


def test_a_tick_that_was_late_is_late_and_the_next_one_in_time():
    way = [0.0, 0.01, 0.02, 0.04, 0.05, 0.06]
    sent = [(BEGIN + number * PERIOD, np.array([value])) for number, value in enumerate(way)]
    told = [status(tick=1, at=BEGIN, commands=1, position=way[0]),
            status(tick=6, at=BEGIN + 5 * PERIOD, commands=6, position=way[5], missed=1)]
    ticks, _ = ticks_of(sent, told, PERIOD)
    assert [round((tick.now_ns - BEGIN) / PERIOD, 1) for tick in ticks] == [1.0, 2.0, 3.6, 4.0, 5.0]


def test_without_a_status_the_soonest_commands_tell_the_ticks():
    sent = commands(50)
    late = [(at + (3_000_000 if number % 3 else 0), value) for number, (at, value) in enumerate(sent)]
    ticks, known = ticks_of(late, [], PERIOD)
    assert not known
    assert [tick.now_ns for tick in ticks] == [at for at, _ in sent]


def test_a_pause_in_the_commands_is_filled_with_ticks_that_gave_none():
    sent = [one for number, one in enumerate(commands(10)) if not 3 <= number < 6]
    ticks, _ = ticks_of(sent, [], PERIOD)
    assert [tick.command for tick in ticks] == [0, 1, 2, None, None, None, 3, 4, 5, 6]
    assert [tick.now_ns for tick in ticks] == [BEGIN + number * PERIOD for number in range(10)]


def test_the_age_of_a_chunk_tells_when_it_was_taken():
    one = status(1, BEGIN + 100_000_000, 1, 0.0, chunk_id=7, chunk_age=0.04,
                 observation_stamp=stamp(BEGIN))
    assert arrivals([one, status(2, BEGIN, 1, 0.0)]) == {("local", 7, BEGIN): BEGIN + 60_000_000}
