# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

from omni_ros.stages import Tally
from omni_ros.stages.tally import WINDOW, State
from omni_ros.stages.transport import Reader, hand_over_inline


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
