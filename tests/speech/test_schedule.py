# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How much sound is made next."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.speech.schedule import MARGIN, RESERVE_S, PlayedFrom, Schedule

SIZES, FRAME_S = (2, 26, 74), 256 / 22050


def test_the_first_chunk_is_the_smallest():
    assert Schedule(SIZES, FRAME_S).next(0.0) == 2


def test_chunks_grow_with_what_is_still_to_be_played():
    schedule = Schedule(SIZES, FRAME_S)
    for size in SIZES:
        schedule.took(size, 0.0004 * size + 0.004)
    chosen = [schedule.next(slack) for slack in (0.0, 0.02, 0.05, 0.2)]
    assert chosen == sorted(chosen)
    assert chosen[-1] == 74


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(1e-5, 0.2), min_size=3, max_size=3), st.floats(0.0, 3.0),
)
def test_nothing_is_begun_that_would_not_be_done_in_time_if_something_would(costs, slack):
    schedule = Schedule(SIZES, FRAME_S, most_s=1.0)
    for size, cost in zip(SIZES, costs, strict=True):
        schedule.took(size, cost)
    keeping_up = [s for s, c in zip(SIZES, costs, strict=True) if c < s * FRAME_S]
    in_time = [s for s in keeping_up if schedule.cost(s) * MARGIN + RESERVE_S <= slack]
    chosen = schedule.next(slack)
    if in_time:
        assert chosen == in_time[-1]


@settings(max_examples=100, deadline=None)
@given(st.floats(0.02, 0.6), st.floats(0.0, 0.012))
def test_a_voice_that_keeps_up_never_lets_the_sink_run_dry(rtf, fixed):
    schedule = Schedule((4, 12, 40, 120), FRAME_S, most_s=0.3)

    def cost(size: int) -> float:
        return fixed + rtf * size * FRAME_S

    slack, made = 0.0, 0
    while made < 2000:
        size = schedule.next(slack)
        taken = cost(size)
        schedule.took(size, taken)
        if made:
            # Until every size was tried once its cost is a guess, by the ones that were.
            assert taken <= slack or cost(4) >= 4 * FRAME_S
        slack = max(0.0, slack - taken) + size * FRAME_S
        made += size


def test_a_voice_that_cannot_keep_up_makes_the_fewest_gaps_it_can():
    schedule = Schedule(SIZES, FRAME_S)
    for size, rtf in zip(SIZES, (3.0, 1.5, 1.2), strict=True):
        schedule.took(size, rtf * size * FRAME_S)
    assert schedule.next(0.0) == 74


def test_a_chunk_that_blocks_an_abort_for_long_is_not_chosen():
    schedule = Schedule(SIZES, FRAME_S, most_s=0.05)
    for size, cost in zip(SIZES, (0.005, 0.03, 0.08), strict=True):
        schedule.took(size, cost)
    assert schedule.next(10.0) == 26


def test_a_slow_chunk_counts_at_once_and_is_forgotten_by_and_by():
    schedule = Schedule((10,), FRAME_S)
    schedule.took(10, 0.01)
    schedule.took(10, 0.09)
    assert schedule.cost(10) == 0.09
    for _ in range(30):
        schedule.took(10, 0.01)
    assert schedule.cost(10) < 0.011


@pytest.mark.parametrize("sizes", [(), (0, 2), (4, 2), (2, 2)])
def test_sizes_that_do_not_rise_are_refused(sizes):
    with pytest.raises(ValueError, match="expected whole numbers that rise"):
        Schedule(sizes, FRAME_S)


def test_a_frame_without_length_is_refused():
    with pytest.raises(ValueError, match="frame_s is 0"):
        Schedule((1,), 0)


def test_without_a_sink_sound_is_taken_to_play_from_the_first_chunk_on():
    now = [10.0]
    played = PlayedFrom(lambda: now[0])
    assert played() == 0
    played.made(0.5)
    now[0] = 10.2
    assert played() == pytest.approx(0.3)
    now[0] = 12.0
    assert played() == 0
    played.made(0.1)
    assert played() == pytest.approx(0.1)
