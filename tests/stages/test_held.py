# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""When a head runs again on the prefix that it has."""

from __future__ import annotations

import pytest

from omni_ros.stages.held import HeldPrefix

MS = 1_000_000


@pytest.fixture
def held():
    made = HeldPrefix(20.0, 500 * MS)
    made.take("prefix", 1000 * MS, 1100 * MS)
    return made


def test_nothing_is_due_before_the_first_prefix():
    held = HeldPrefix(20.0, 500 * MS)
    assert held.wait_ns(0) is None and held.age_ns(0) is None


def test_the_head_is_due_a_period_after_it_ran_on_a_new_prefix(held):
    assert held.wait_ns(1100 * MS) == 50 * MS
    assert held.wait_ns(1150 * MS) == held.wait_ns(1170 * MS) == 0


def test_it_keeps_its_rate_and_makes_up_for_nothing(held):
    held.ran(1155 * MS)  # 5 ms late: the next one is in time all the same
    assert held.wait_ns(1155 * MS) == 45 * MS
    held.ran(1400 * MS)  # far too late: no burst
    assert held.wait_ns(1400 * MS) == 50 * MS


def test_its_age_is_that_of_the_pictures(held):
    assert held.age_ns(1300 * MS) == 300 * MS


def test_it_is_let_go_when_its_pictures_are_too_old(held):
    assert held.wait_ns(1500 * MS) == 0
    assert held.wait_ns(1501 * MS) is None
    assert held.what is None and held.age_ns(1501 * MS) is None


def test_a_clock_that_goes_back_lets_it_go(held):
    assert held.wait_ns(1050 * MS) is None


def test_a_new_prefix_takes_the_place_of_the_old_one(held):
    held.take("newer", 1300 * MS, 1400 * MS)
    assert (held.what, held.age_ns(1400 * MS)) == ("newer", 100 * MS)
    assert held.wait_ns(1400 * MS) == 50 * MS
