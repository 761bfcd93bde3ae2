# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from omni_ros.speech.qwen3.pace import Pace


def paced(**milliseconds: float) -> Pace:
    pace = Pace(0.08)
    for stage, cost in milliseconds.items():
        pace.add(stage, 1e-3 * cost)
    return pace


def test_a_frame_costs_the_sum_of_its_stages():
    pace = paced(talker=10, predictor=30)
    pace.add("vocoder", 0.08, frames=4)
    assert pace.cost == pytest.approx(0.06) and pace.factor == pytest.approx(0.75)


def test_a_cost_follows_what_is_measured_a_little_at_a_time():
    pace = paced(talker=10)
    pace.add("talker", 0.02)
    assert 0.01 < pace.cost < 0.012
    for _ in range(60):
        pace.add("talker", 0.02)
    assert pace.cost == pytest.approx(0.02, rel=0.01)


@pytest.mark.parametrize("cost, verdict", [
    (60, ""), (75, ""), (79, "may have gaps when anything else runs"),
    (160, "takes 160 ms for a frame of 80 ms (predictor 160): speech will have gaps, some 50%"),
])  # fmt: skip
def test_the_verdict_has_the_numbers(cost, verdict):
    text = paced(predictor=cost).verdict()
    assert verdict in text and bool(text) == bool(verdict)


@pytest.mark.parametrize("cost, frames, buffered", [(60, 100, 0), (100, 100, 20), (160, 100, 50),
                                                    (160, 0, 0), (8000, 10, 10)])
def test_so_much_is_buffered_that_playback_ends_with_the_last_frame(cost, frames, buffered):
    """Playing 100 frames from frame b on ends when all are made: b = frames - frames * 80 / cost."""
    assert paced(predictor=cost).frames_to_buffer(frames) == buffered
