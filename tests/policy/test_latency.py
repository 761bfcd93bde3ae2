# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The delay follows recent latencies, and is always a whole number."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.policy.latency import LatencyEstimator, check_latency

MS = 10**6
DT = 33_333_333


def test_one_slow_first_call_does_not_inflate_the_delay():
    estimator = LatencyEstimator()
    estimator.add(700 * MS)
    delays = []
    for _ in range(50):
        estimator.add(300 * MS)
        delays.append(estimator.delay(dt_ns=DT))
    assert set(delays) <= {9, 10}


def test_a_slow_call_in_the_middle_leaves_with_the_window():
    estimator = LatencyEstimator(window=20, percentile=100.0)
    for latency in [300, 300, 700] + 20 * [300]:
        estimator.add(latency * MS)
    assert estimator.delay(dt_ns=DT) == 9


def test_two_chunks_in_a_row_have_an_integer_delay():
    estimator = LatencyEstimator()
    first = estimator.delay(dt_ns=DT)
    estimator.add(300 * MS)
    second = estimator.delay(dt_ns=DT)
    assert type(first) is int and type(second) is int
    assert (first, second) == (0, 9)


def test_an_expected_latency_stands_in_until_one_is_measured():
    estimator = LatencyEstimator(expected_ns=200 * MS)
    estimator.add(700 * MS)
    assert estimator.delay(dt_ns=DT) == 6
    estimator.add(300 * MS)
    assert estimator.delay(dt_ns=DT) == 9


def test_a_percentile_ignores_the_rare_outlier():
    estimator = LatencyEstimator(window=40, percentile=90.0, warm_up=0)
    for index in range(40):
        estimator.add((900 if index % 20 == 0 else 300) * MS)
    assert estimator.delay(dt_ns=DT) == 9


def test_a_part_of_a_row_counts_as_a_whole_one():
    estimator = LatencyEstimator(warm_up=0)
    estimator.add(301 * MS)
    assert estimator.delay(dt_ns=DT) == 10


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=60), st.integers(1, 10**9),
       st.integers(0, 3), st.floats(1, 100))
def test_the_estimate_is_one_of_the_recent_measurements(latencies, dt_ns, warm_up, percentile):
    estimator = LatencyEstimator(window=10, warm_up=warm_up, percentile=percentile)
    for latency in latencies:
        estimator.add(latency)
    counted = latencies[warm_up:][-10:] or latencies
    assert estimator.latency_ns() in counted
    assert type(estimator.delay(dt_ns=dt_ns)) is int


def test_after_a_reset_nothing_is_known():
    estimator = LatencyEstimator(warm_up=0)
    estimator.add(300 * MS)
    estimator.reset()
    assert estimator.delay(dt_ns=DT) == 0


@pytest.mark.parametrize("wrong", [{"window": 0}, {"percentile": 0.0}, {"percentile": 101.0},
                                   {"warm_up": -1}, {"expected_ns": -1}])
def test_an_impossible_setting_is_refused(wrong):
    with pytest.raises(ValueError, match="latency"):
        LatencyEstimator(**wrong)


def test_a_negative_latency_is_refused():
    with pytest.raises(ValueError, match="-5 ns"):
        LatencyEstimator().add(-5)


def test_chunks_that_would_be_used_up_before_the_next_are_refused_with_the_numbers():
    check_latency(1300 * MS, chunk=50, execution_horizon=10, dt_ns=DT)
    with pytest.raises(ValueError, match=r"1400 ms.*1333 ms.*50 rows - 10"):
        check_latency(1400 * MS, chunk=50, execution_horizon=10, dt_ns=DT)
