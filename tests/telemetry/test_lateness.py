# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The lateness histogram: bounded error, bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.telemetry.lateness import Lateness


def test_without_ticks_lateness_is_zero():
    assert Lateness().summary_s() == (0.0, 0.0, 0.0)


def test_percentiles_err_on_the_late_side_by_at_most_one_bin():
    late = np.random.default_rng(0).lognormal(np.log(200e3), 1.5, 20000).astype(int)
    histogram = Lateness()
    for value in late:
        histogram.add(int(value))
    for percent in (50.0, 90.0, 99.0):
        exact = np.percentile(late, percent, method="inverted_cdf")
        assert exact <= histogram.percentile_ns(percent) <= 1.07 * exact


def test_the_maximum_is_exact_even_beyond_the_last_bin():
    histogram = Lateness()
    histogram.add(1_000_000)
    histogram.add(123_456_789_012)
    assert histogram.max_ns == 123_456_789_012
    assert histogram.percentile_ns(100.0) == 123_456_789_012


def test_an_early_tick_counts_as_on_time():
    histogram = Lateness()
    histogram.add(-5_000_000)
    assert histogram.count == 1
    assert histogram.summary_s() == (0.0, 0.0, 0.0)


def test_the_number_of_bins_does_not_grow_with_the_ticks():
    histogram = Lateness()
    size = len(histogram._bins)
    for value in range(0, 10**11, 10**8):
        histogram.add(value)
    assert len(histogram._bins) == size


def test_clear_forgets_all_ticks():
    histogram = Lateness()
    histogram.add(10**6)
    histogram.clear()
    assert (histogram.count, histogram.max_ns, histogram.percentile_ns(99.0)) == (0, 0, 0)


def test_a_percentage_beyond_100_is_refused():
    with pytest.raises(ValueError, match="expected 0 to 100"):
        Lateness().percentile_ns(101.0)
