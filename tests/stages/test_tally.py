# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest

from omni_ros.stages import Tally
from omni_ros.stages.tally import MOST_TIMED, WINDOW, State
from omni_ros.stages.transport import Reach, Reader, hand_off_seconds, hand_over_inline


def test_counts_timings_and_rate_of_what_went_through():
    tally = Tally()
    for step in range(5):
        tally.started()
        tally.handed_on(step + 1, 1000 + step, step * 500_000_000, {"run": 0.1 * (step + 1)}, 0.2)
    numbers = tally.numbers()
    assert (numbers.started, numbers.handed_on, numbers.observation_seq) == (5, 5, 5)
    assert math.isclose(numbers.timings["run"][0], 0.3)
    assert math.isclose(numbers.rate_hz, 2.0)
    assert numbers.latency == (0.2, 0.2)


def test_drops_are_counted_by_reason():
    tally = Tally()
    tally.dropped("too old", 3, 30)
    tally.dropped("replaced", number=2)
    assert tally.numbers().dropped == {"too old": 1, "replaced": 2}
    assert tally.numbers().observation_seq == 3


def test_only_the_last_observations_count_for_percentiles():
    tally = Tally()
    for step in range(3 * WINDOW):
        tally.handed_on(step, 0, step, {"run": float(step)}, float(step))
    assert tally.numbers().latency[0] > 2 * WINDOW - 1


def test_without_observations_there_is_no_latency_and_no_rate():
    numbers = Tally().numbers()
    assert math.isnan(numbers.latency[0])
    assert numbers.rate_hz == 0.0
    assert numbers.state is State.INACTIVE


def test_a_reset_forgets_everything():
    tally = Tally()
    tally.set_state(State.RUNNING, "yes")
    tally.handed_on(1, 2, 3, {"run": 1.0})
    tally.reset()
    numbers = tally.numbers()
    assert (numbers.handed_on, numbers.timings, numbers.text) == (0, {}, "")


def test_a_reader_in_the_same_scope_gets_shared_memory():
    assert not hand_over_inline("boot/pid", Reader("boot/pid"))


def test_any_other_reader_gets_the_bytes_inline():
    assert hand_over_inline("boot/pid", Reader("boot/other"))
    assert hand_over_inline("boot/pid", Reader("boot/pid", wants_inline=True))
    assert hand_over_inline("boot/pid", None)
    assert hand_over_inline("", Reader(""))


def test_names_of_stages_do_not_fill_the_memory():
    tally = Tally()
    for step in range(10 * MOST_TIMED):
        tally.handed_on(step, 0, step, {"run": 1.0, f"stage {step}": 1.0})
    timings = tally.numbers().timings
    assert len(timings) == MOST_TIMED and "run" in timings


def unreachable() -> Reach:
    reach = Reach()
    for _ in range(Reach.PATIENCE):
        assert not reach.wants_inline(0)
        reach.note(False, 0)
    return reach


def test_rings_that_cannot_be_reached_are_asked_for_inline_and_tried_again_later():
    reach, wait = unreachable(), Reach.RETRY_NS
    assert reach.wants_inline(wait - 1) and not reach.wants_inline(wait)
    reach.note(False, wait)  # in vain: the next try is in twice that time
    assert reach.wants_inline(3 * wait - 1) and not reach.wants_inline(3 * wait)


def test_once_reached_a_failure_is_the_first_one_again():
    reach = unreachable()
    reach.note(True, Reach.RETRY_NS)
    reach.note(False, Reach.RETRY_NS + 1)
    assert not reach.wants_inline(Reach.RETRY_NS + 1)


def test_what_was_under_way_when_it_was_asked_for_inline_does_not_make_the_wait_longer():
    reach = unreachable()
    for mono_ns in range(9):
        reach.note(False, mono_ns)
    assert not reach.wants_inline(Reach.RETRY_NS)


@pytest.mark.parametrize("handed_over_ns, seconds", [
    (1_700_000_000_000_000_000, 0.5), (0, 0.0), (-2**31 * 10**9, 0.0),
    (1_700_000_001_000_000_000, 0.0)])
def test_a_hand_off_takes_what_two_clocks_can_tell(handed_over_ns, seconds):
    assert hand_off_seconds(1_700_000_000_500_000_000, handed_over_ns) == seconds
