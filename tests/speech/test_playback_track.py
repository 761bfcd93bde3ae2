# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How far an utterance has been played; times are made up."""

from __future__ import annotations

import pytest

from omni_ros.speech.playback_track import EXTRAPOLATE_S, Track

S = 1_000_000_000
REPORT = {"played": 0.0, "at_ns": 0, "first_ns": 0, "done_ns": 0, "dry": 0, "dry_s": 0.0,
          "longest_dry_s": 0.0}


def silent() -> Track:
    return Track(1, 1000.0, device=False)


def test_without_a_card_the_clock_plays():
    track = silent()
    track.wrote(500, 10 * S)
    assert track.position(10 * S + S // 5) == pytest.approx(200)
    assert track.slack_s(10 * S + S // 5) == pytest.approx(0.3)


def test_it_is_done_when_all_has_been_played_though_nobody_looked():
    track = silent()
    track.wrote(500, 10 * S)
    track.end(10 * S + 1)
    track.advance(20 * S)
    assert track.done_ns == pytest.approx(10.5 * S, abs=1000)
    assert track.position(20 * S) == 500


def test_samples_that_come_too_late_are_an_underrun():
    track = silent()
    track.wrote(100, 10 * S)
    track.advance(10 * S + S // 5)
    track.wrote(100, 10 * S + 3 * S // 10)
    assert track.dry == 1 and track.dry_s == pytest.approx(0.2)
    assert track.position(10 * S + S // 3) < 200


def test_a_pause_for_text_is_no_underrun():
    track = silent()
    track.wrote(100, 10 * S)
    track.paused = True
    track.advance(12 * S)
    track.wrote(100, 13 * S)
    assert track.dry == 0


def test_an_utterance_of_nothing_is_done_and_was_never_heard():
    track = silent()
    track.end(S)
    assert track.done_ns and not track.first_ns


def test_a_report_of_the_card_is_carried_on_by_the_clock_but_not_for_long():
    track = Track(1, 1000.0, device=True)
    track.wrote(2000, 0)
    assert track.position(5 * S) == 0.0
    track.report({**REPORT, "played": 100.0, "at_ns": 10 * S, "first_ns": 9 * S})
    assert track.position(10 * S + S // 20) == pytest.approx(150)
    assert track.position(99 * S) == pytest.approx(100 + EXTRAPOLATE_S * 1000)


def test_after_a_clear_the_position_stays():
    track = silent()
    track.wrote(500, 10 * S)
    track.advance(10 * S + S // 10)
    track.cleared = True
    assert track.position(99 * S) == pytest.approx(100) and track.over
