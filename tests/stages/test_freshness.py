# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from types import SimpleNamespace

from omni_ros.stages import Freshness

MS = 1_000_000


def seen(stamp_ms: int) -> SimpleNamespace:
    return SimpleNamespace(stamp_ns=stamp_ms * MS)


def test_what_was_seen_after_it_was_due_is_taken_at_once():
    found = seen(501)
    assert Freshness().choose(found, due_ns=500 * MS, now_ns=502 * MS) is found


def test_what_lies_there_from_before_waits_for_a_newer_one():
    fresh, newer = Freshness(), seen(510)
    assert fresh.choose(seen(480), due_ns=500 * MS, now_ns=501 * MS) is None
    assert fresh.choose(newer, due_ns=500 * MS, now_ns=511 * MS) is newer


def test_if_none_comes_in_time_the_older_one_is_taken():
    fresh, found = Freshness(), seen(480)
    assert fresh.choose(found, due_ns=500 * MS, now_ns=501 * MS) is None
    assert fresh.choose(None, due_ns=500 * MS, now_ns=599 * MS) is None
    assert fresh.choose(None, due_ns=500 * MS, now_ns=600 * MS) is found


def test_when_nothing_is_played_the_first_is_taken():
    found = seen(1000)
    assert Freshness().choose(found, due_ns=0, now_ns=1100 * MS) is found


def test_what_was_taken_or_forgotten_does_not_come_again():
    fresh = Freshness()
    fresh.choose(seen(480), due_ns=500 * MS, now_ns=501 * MS)
    fresh.reset()
    assert fresh.choose(None, due_ns=500 * MS, now_ns=700 * MS) is None
    fresh.choose(seen(800), due_ns=0, now_ns=801 * MS)
    assert fresh.choose(None, due_ns=0, now_ns=802 * MS) is None


def test_a_clock_that_went_back_does_not_wait():
    found = seen(100)
    assert Freshness().choose(found, due_ns=500 * MS, now_ns=101 * MS) is found


def test_what_was_held_back_for_too_long_is_not_used():
    fresh = Freshness(oldest_ns=500 * MS)
    assert fresh.choose(seen(480), due_ns=500 * MS, now_ns=501 * MS) is None
    assert fresh.choose(None, due_ns=500 * MS, now_ns=981 * MS) is None
    assert fresh.choose(None, due_ns=500 * MS, now_ns=900 * MS) is None


def test_the_intake_judges_the_age_of_what_it_has_just_found():
    found = seen(1)
    assert Freshness(oldest_ns=500 * MS).choose(found, due_ns=0, now_ns=900 * MS) is found
