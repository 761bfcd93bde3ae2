# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest

from omni_ros.speech.qwen3.chunks import ChunkSizes, first_chunk
from omni_ros.speech.qwen3.options import QwenOptions
from omni_ros.speech.qwen3.pace import Pace
from omni_ros.speech.schedule import Schedule

FRAME_S = 0.08


def schedule(**costs_ms: float) -> Schedule:
    made = Schedule((1, 2, 4), FRAME_S, most_s=math.inf)
    for size, cost in costs_ms.items():
        made.took(int(size[1:]), 1e-3 * cost)
    return made


@pytest.mark.parametrize("costs, frames", [
    (dict(_1=20, _2=35, _4=65), 1), (dict(_1=50, _2=90, _4=170), 1),
    (dict(_1=76, _2=151, _4=292), 2), (dict(_1=79, _2=151, _4=292), 3),
    (dict(_1=90, _2=170, _4=300), 5),
])  # fmt: skip
def test_the_first_chunk_lasts_until_the_next_one_is_made(costs, frames):
    assert first_chunk(schedule(**costs)) == frames


def test_a_machine_that_cannot_keep_up_starts_with_what_costs_least_a_frame():
    assert first_chunk(schedule(_1=160, _2=310, _4=600)) == 4


def play(costs_ms: dict, frames: int, cost_of_a_frame_ms: float) -> tuple[float, list[int]]:
    """Return seconds of silence in between, and chunk sizes, of a machine of these costs."""
    plan = schedule(**costs_ms)
    clock, until, silent, sizes = 0.0, None, 0.0, []
    chunks = ChunkSizes(QwenOptions(), Pace(FRAME_S), plan,
                        lambda: max(0.0, until - clock) if until is not None else 0.0)
    waiting = 0
    for _ in range(frames):
        clock += 1e-3 * cost_of_a_frame_ms
        waiting += 1
        if chunks.ready(waiting, frames):
            rest, spent = waiting, 0.0
            for size in (4, 2, 1):
                own = 1e-3 * (costs_ms[f"_{size}"] - size * cost_of_a_frame_ms)
                spent, rest = spent + rest // size * own, rest % size
            clock += spent
            if until is not None and clock > until:
                silent += clock - until
            until = max(clock, until or clock) + waiting * FRAME_S
            sizes.append(waiting)
            waiting = 0
    return silent, sizes


def test_playback_does_not_run_dry_on_a_machine_that_barely_keeps_up():
    silent, sizes = play(dict(_1=76, _2=148, _4=280), 200, 48)
    assert silent == 0.0 and sizes[0] == 2


def test_chunks_grow_to_the_largest_where_there_is_time():
    silent, sizes = play(dict(_1=50, _2=85, _4=150), 60, 30)
    assert silent == 0.0 and sizes[0] == 1 and max(sizes) == 4
