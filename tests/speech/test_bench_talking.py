# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What `omni bench talking` makes of what it measured."""

from __future__ import annotations

import pytest

from omni_ros.cli.bench_talking import render
from omni_ros.telemetry.provenance import provenance

HELD = {"files": 31, "threads": 17, "resident_kb": 1000}


def goals(first_audio_s: list[float]) -> str:
    part = {"count": len(first_audio_s), "ends": {"succeeded": len(first_audio_s)}, "before": HELD,
            "after": HELD | {"resident_kb": 1200}, "first_audio_s": first_audio_s}
    return render({"goals": part, "provenance": provenance()})


def test_the_first_ten_goals_stand_beside_the_last_ten():
    text = goals([0.1] * 10 + [9.0] * 300 + [0.2] * 9 + [0.4])
    assert "first 10 goals 100 ms (100-100), last 10 goals 200 ms (200-400); last / first 2.00" in text
    assert "resident +200 kB of 1200 kB" in text


@pytest.mark.parametrize(("count", "words"), [(0, "too few"), (1, "too few"), (5, "first 2 goals")])
def test_few_goals_are_compared_as_far_as_they_go(count, words):
    assert words in goals([0.1] * count)
