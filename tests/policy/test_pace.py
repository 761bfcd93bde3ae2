# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The next observation starts in time for its chunk, one at a time, by latencies as measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.policy.pace import Pace, chunk_life_ns
from omni_ros.robot import PolicyConfig

MS = 10**6
START = 1_700_000_000 * 10**9


def config(rate=10.0, horizon=8, **settings):
    return PolicyConfig(action_rate_hz=rate, execution_horizon=horizon, **settings)


def pace(chunk=16, **settings):
    return Pace(config(**settings), chunk)


def play(pace, stamp, latency):
    pace.started(stamp, stamp)
    return pace.arrived(stamp, stamp + latency)


def test_the_first_observation_is_due_at_once():
    assert pace().ready(START) and pace().next_ns == 0


def test_nothing_is_started_while_one_is_in_flight():
    one = pace()
    one.started(START, START)
    assert one.in_flight and not one.ready(START + 500 * MS)


def test_the_next_is_due_the_horizon_after_the_last_observation():
    one = pace(horizon=8)
    play(one, START, 100 * MS)
    assert one.next_ns == START + 800 * MS
    assert not one.ready(START + 799 * MS) and one.ready(START + 800 * MS)


def test_the_next_is_due_earlier_if_its_chunk_would_come_too_late_otherwise():
    one = pace(chunk=16, horizon=12)
    play(one, START, 700 * MS)
    assert one.next_ns == START + (1600 - 700) * MS


def test_the_measured_latency_counts_and_not_the_largest_ever():
    one = pace(chunk=16, horizon=15)
    play(one, START, 900 * MS)
    for index in range(1, 40):
        play(one, START + index * 1000 * MS, 300 * MS)
    assert one.estimator.delay(dt_ns=one.dt_ns) == 3
    assert one.next_ns == START + 39_000 * MS + 1300 * MS


def test_a_chunk_that_is_not_the_one_in_flight_is_not_counted():
    one = pace()
    one.started(START, START)
    assert one.arrived(START - MS, START + MS) is None
    assert one.in_flight and one.estimator.latency_ns() == 0
    assert one.arrived(START, START + 200 * MS) == 200 * MS
    assert one.arrived(START, START + 300 * MS) is None


def test_a_dropped_observation_is_no_latency_and_the_next_is_due_at_once():
    one = pace()
    play(one, START, 100 * MS)
    one.started(START + 800 * MS, START + 800 * MS)
    one.dropped(START + 800 * MS)
    assert one.ready(START + 801 * MS)
    assert one.estimator.latency_ns() == 100 * MS


def test_dropping_another_observation_changes_nothing():
    one = pace()
    one.started(START, START)
    one.dropped(START - 1)
    assert one.in_flight


def test_a_chunk_that_does_not_come_within_its_life_is_lost_and_counted():
    one = pace()
    life = chunk_life_ns(one.config, 16)
    one.started(START, START)
    assert not one.lost(START + life)
    assert one.lost(START + life + 1) and not one.lost(START + life + 2)
    assert one.lost_count == 1 and one.ready(START + life + 1)


def test_a_clock_that_goes_back_neither_waits_for_the_lost_nor_for_the_last():
    one = pace()
    one.started(START, START)
    assert one.lost(START - 1)
    play(one, START, 100 * MS)
    assert one.ready(START - 1)


def test_after_a_reset_the_next_is_due_at_once_and_latencies_are_still_known():
    one = pace()
    play(one, START, 100 * MS)
    one.reset()
    assert one.ready(START) and one.estimator.latency_ns() == 100 * MS


def test_an_expected_latency_counts_until_one_is_measured():
    assert Pace(config(), 16, expected_latency_ns=50 * MS).estimator.latency_ns() == 50 * MS


@pytest.mark.parametrize("chunk", [7, 8])
def test_a_horizon_that_leaves_no_row_is_refused_with_both(chunk):
    with pytest.raises(ValueError, match=f"execution_horizon is 8; .* {chunk} rows"):
        pace(chunk=chunk, horizon=8)


def test_a_set_up_that_keeps_up_is_fine():
    assert pace().verdict(600 * MS) is None


def test_a_set_up_that_hardly_keeps_up_is_told_with_the_numbers():
    got = pace().verdict(700 * MS)
    assert not got.refused
    assert "700 ms, 88% of the 800 ms" in got.text and "execution_horizon" in got.text


@pytest.mark.parametrize("latency", [800, 3000])
def test_a_set_up_that_cannot_keep_up_is_refused_with_the_numbers(latency):
    got = pace().verdict(latency * MS)
    assert got.refused and f"{latency} ms, but only 800 ms" in got.text


def test_a_chunk_lives_as_long_as_its_rows_and_the_room_for_computing_it():
    assert chunk_life_ns(config(horizon=8), 16) == (1600 + 800) * MS


def test_a_life_that_was_set_counts():
    assert chunk_life_ns(config(life_s=0.5), 16) == 500 * MS


@settings(derandomize=True, deadline=None)
@given(st.integers(2, 60), st.data(), st.lists(st.integers(0, 3000), min_size=1, max_size=30))
def test_the_next_is_never_later_than_the_horizon_or_than_the_chunk_allows(chunk, data, latencies):
    horizon = data.draw(st.integers(1, chunk - 1))
    one, now = pace(chunk=chunk, horizon=horizon), START
    for latency in latencies:
        assert one.ready(max(now, one.next_ns))
        now = max(now, one.next_ns)
        play(one, now, latency * MS)
        assert one.next_ns - now <= horizon * one.dt_ns
        assert one.next_ns + one.estimator.latency_ns() <= now + chunk * one.dt_ns
        now += latency * MS


def play_for(seconds, *, latency, rate, chunk, horizon):
    """Run the loop in simulated time; return the moments at which chunks took over."""
    one, now, arrivals = pace(chunk=chunk, rate=rate, horizon=horizon), START, []
    flying = None
    while now < START + seconds * 10**9:
        if flying is not None and now >= flying + latency:
            one.arrived(flying, now)
            arrivals.append((flying, now))
            flying = None
        if one.ready(now):
            one.started(now, now)
            flying = now
        now += 2 * MS
    return one, arrivals


def test_a_chunk_is_always_there_before_the_last_one_is_used_up():
    one, arrivals = play_for(60, latency=350 * MS, rate=30.0, chunk=50, horizon=25)
    assert len(arrivals) >= 60
    for (stamp, _), (_, next_arrival) in zip(arrivals, arrivals[1:]):
        assert next_arrival < stamp + 50 * one.dt_ns


def test_the_rate_of_chunks_follows_the_horizon():
    one, arrivals = play_for(20, latency=100 * MS, rate=15.0, chunk=16, horizon=8)
    assert len(arrivals) == pytest.approx(20 / (8 / 15), abs=2)
    assert math.isclose(one.dt_ns, 10**9 / 15, rel_tol=1e-6)
