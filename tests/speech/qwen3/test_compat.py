# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The tables measured on vLLM-Omni 0.30, reproduced."""

from __future__ import annotations

import pytest

from omni_ros.speech.qwen3.compat import (
    ChunkRules,
    CompatSchedule,
    dynamic_first_chunk,
    largest_first_chunk,
)


def emissions(schedule: CompatSchedule, frames: int, ms_per_frame: float = 0.0) -> list:
    """What is sent while `frames` frames are made, the flush at the end included."""
    found = []
    for made in range(1, frames + 1):
        emission = schedule.step(made, made * ms_per_frame)
        if emission is not None:
            found.append(emission)
    found.append(schedule.step(frames, frames * ms_per_frame, finished=True))
    return found


def table(found: list) -> list[tuple[int, int]]:
    return [(emission.at, emission.frames) for emission in found]


def test_the_default_sends_one_frame_then_twenty_five_and_the_rest_at_the_end():
    found = emissions(CompatSchedule(), 60)
    assert table(found) == [(1, 1), (26, 25), (51, 25), (60, 9)]
    assert [emission.finished for emission in found] == [False, False, False, True]


def test_an_utterance_that_ends_with_a_chunk_gets_an_empty_one_as_its_end():
    found = emissions(CompatSchedule(), 51)
    assert table(found) == [(1, 1), (26, 25), (51, 25), (51, 0)]
    assert found[-1].finished and not found[-2].finished


def test_an_utterance_without_frames_is_only_an_empty_end():
    found = [CompatSchedule().step(0, finished=True)]
    assert table(found) == [(0, 0)] and found[0].finished and found[0].left_context == 0


def test_without_a_first_chunk_an_idle_server_starts_with_two_frames():
    schedule = CompatSchedule(ChunkRules(first_chunk_frames=0), active=0, slots=64)
    assert table(emissions(schedule, 60)) == [(2, 2), (27, 25), (52, 25), (60, 8)]


def test_a_ramp_is_followed_and_then_the_steady_chunk():
    schedule = CompatSchedule(ChunkRules(ramp=(4, 4, 8, 16, 25)))
    assert [frames for _, frames in table(emissions(schedule, 100))] == [4, 4, 8, 16, 25, 25, 18]


def test_reference_speech_is_the_first_chunks_left_context_alone():
    found = emissions(CompatSchedule(reference_frames=100), 30)
    assert table(found) == [(1, 1), (26, 25), (30, 4)]
    assert [emission.left_context for emission in found] == [72, 0, 0]


@pytest.mark.parametrize("ms_per_frame, chunks", [
    (16, [2, 4, 11, 25, 25, 25, 25, 3]),
    (60, [2, 4, 8, 12, 16, 20, 24, 25, 9]),
    (90, [2, 4, 10, 16, 22, 25, 25, 16]),
    (150, [2, 4, 14, 24, 25, 25, 25, 1]),
])  # fmt: skip
def test_adaptive_chunks_grow_with_the_buffer_and_with_the_cost(ms_per_frame, chunks):
    schedule = CompatSchedule(ChunkRules(adaptive=True))
    assert [frames for _, frames in table(emissions(schedule, 120, ms_per_frame))] == chunks


@pytest.mark.parametrize("steady, first, at", [(25, 10, [10, 35]), (16, 8, [8, 24]),
                                               (25, 5, [5, 30])])  # fmt: skip
def test_steady_chunks_count_from_the_first(steady, first, at):
    schedule = CompatSchedule(ChunkRules(chunk_frames=steady, first_chunk_frames=first))
    found = emissions(schedule, at[-1])
    assert [emission.at for emission in found[:-1]] == at


def test_a_short_utterance_is_flushed_at_its_end():
    schedule = CompatSchedule(ChunkRules(first_chunk_frames=10))
    assert table(emissions(schedule, 5)) == [(5, 5)]


@pytest.mark.parametrize("active, slots, largest, first", [
    (0, 4, 32, 2), (2, 4, 32, 8), (4, 4, 32, 32), (10, 4, 16, 16), (0, 4, 1, 1), (0, 0, 16, 2),
])  # fmt: skip
def test_the_first_chunk_grows_with_the_load(active, slots, largest, first):
    assert dynamic_first_chunk(active, slots, largest) == first


@pytest.mark.parametrize("chunk, largest", [(25, 16), (50, 32), (70, 64), (8, 4), (4, 2), (2, 1),
                                            (1, 1)])  # fmt: skip
def test_the_largest_first_chunk_is_a_power_of_two_below_the_steady_one(chunk, largest):
    assert largest_first_chunk(chunk) == largest


def test_the_first_chunk_of_a_request_outranks_the_rules():
    assert emissions(CompatSchedule(first_chunk_frames=7), 10)[0].frames == 7


def test_a_ramp_outranks_the_first_chunk_of_a_request():
    schedule = CompatSchedule(ChunkRules(ramp=(3, 25)), first_chunk_frames=7)
    assert emissions(schedule, 10)[0].frames == 3


def test_the_adaptive_rule_outranks_a_ramp():
    schedule = CompatSchedule(ChunkRules(ramp=(3, 25), adaptive=True))
    assert emissions(schedule, 10, 60)[0].frames == 2


def test_a_first_chunk_longer_than_the_steady_one_is_cut_to_it():
    assert emissions(CompatSchedule(first_chunk_frames=40), 30)[0].frames == 25


@pytest.mark.parametrize("ramp", [(4,), (4, 0, 25), (4, -1)])
def test_a_ramp_of_one_chunk_or_with_an_empty_one_is_not_used_and_that_is_said(ramp, caplog):
    schedule = CompatSchedule(ChunkRules(ramp=ramp))
    assert emissions(schedule, 10)[0].frames == 1
    assert "not used" in caplog.text


def test_a_ramp_that_does_not_end_in_the_steady_chunk_is_followed_and_that_is_said(caplog):
    schedule = CompatSchedule(ChunkRules(ramp=(2, 10)))
    assert [frames for _, frames in table(emissions(schedule, 40))] == [2, 10, 25, 3]
    assert "ends with 10 frames" in caplog.text


def test_no_chunk_has_more_frames_than_the_decoder_takes_even_after_a_stall():
    schedule = CompatSchedule(ChunkRules(adaptive=True))
    assert schedule.step(2, 0.0).frames == 2
    stalled = [schedule.step(80, 5000.0) for _ in range(4)]
    assert [emission and emission.frames for emission in stalled] == [25, 25, 25, None]
    assert schedule.step(80, 5000.0, finished=True).frames == 3


def test_windows_carry_up_to_seventy_two_frames_of_history():
    found = emissions(CompatSchedule(windows=True), 100)
    assert [(e.frames, e.left_context) for e in found] == [
        (1, 0), (25, 1), (25, 26), (25, 51), (24, 72)]  # fmt: skip


def test_going_on_after_the_end_is_refused():
    schedule = CompatSchedule()
    schedule.step(0, finished=True)
    with pytest.raises(ValueError, match="had ended"):
        schedule.step(1)
