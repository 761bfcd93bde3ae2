# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated time keeps up with real time, and gives up gracefully where it cannot."""

from __future__ import annotations

import pytest

from omni_ros.world.pacing import MAX_LAG_S, Divider, Pacer

MS = 1_000_000


def test_no_step_is_due_before_its_deadline():
    pacer = Pacer(0.005)
    pacer.start(0)
    assert not pacer.due(5 * MS - 1)
    assert pacer.due(5 * MS)
    assert not pacer.due(5 * MS)


def test_steps_missed_during_a_short_pause_are_all_made_up_for():
    pacer = Pacer(0.005)
    pacer.start(0)
    now = 80 * MS
    while pacer.due(now):
        pass
    assert pacer.steps == 16
    assert pacer.slipped_ns == 0
    assert pacer.deadline_ns == 85 * MS


def test_a_long_pause_is_forgiven_and_counted():
    pacer = Pacer(0.005)
    pacer.start(0)
    pause = 3_000 * MS
    assert pacer.due(pause)
    assert not pacer.due(pause)
    assert pacer.slipped_ns == pause - 5 * MS > MAX_LAG_S * 1e9


def test_a_machine_too_slow_for_it_slips_at_a_steady_pace():
    pacer = Pacer(0.005)
    pacer.start(0)
    now = 0
    for _ in range(1000):  # each step takes 10 ms, twice its time
        now += 10 * MS
        pacer.due(now)
    lag = now - pacer.deadline_ns
    assert lag <= MAX_LAG_S * 1e9
    assert pacer.slipped_ns + lag + pacer.steps * 5 * MS == pytest.approx(now, abs=5 * MS)


def test_a_real_time_factor_shortens_the_interval():
    pacer = Pacer(0.005, 2.0)
    pacer.start(0)
    assert pacer.due(2_500_000)


@pytest.mark.parametrize("arguments", [(0.0, 1.0), (0.005, 0.0), (0.005, -1.0)])
def test_a_period_or_factor_that_is_not_positive_is_refused(arguments):
    with pytest.raises(ValueError, match="above 0"):
        Pacer(*arguments)


@pytest.mark.parametrize("rate", [200, 100, 60, 20, 15, 7])
def test_a_divider_keeps_its_average_rate_whatever_the_period(rate):
    divider = Divider(rate)
    count = sum(divider.due(step * 5 * MS) for step in range(200 * 20))
    assert count == pytest.approx(rate * 20, abs=1)


def test_a_divider_does_not_make_up_for_a_gap_with_a_burst():
    divider = Divider(100)
    divider.due(0)
    assert divider.due(1_000 * MS)
    assert not divider.due(1_005 * MS)
    assert divider.due(1_010 * MS)


def test_a_divider_of_rate_zero_is_never_due():
    assert not any(Divider(0).due(step * 5 * MS) for step in range(100))
