# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from omni_ros.stages import DROPS, Gate, Instruction
from omni_ros.stages.gate import REMEMBERED, Succession

SECOND = 1_000_000_000


@pytest.fixture
def gate() -> Gate:
    return Gate("abc", life_ns=2 * SECOND)


def admit(gate: Gate, seq: int, *, bundle: str = "abc", pipeline: int = 1, instruction: int = 5,
          age_s: float = 0.1) -> str | None:
    now = 1000 * SECOND
    reason = gate.admit(bundle=bundle, pipeline=pipeline, seq=seq, instruction=instruction,
                        stamp_ns=now - round(age_s * SECOND), now_ns=now)
    assert reason is None or reason in DROPS
    return reason


def test_newer_observations_pass(gate):
    assert [admit(gate, seq) for seq in (1, 2, 7)] == [None, None, None]


@pytest.mark.parametrize("seq", [3, 2, 0])
def test_one_that_is_not_newer_is_out_of_order(gate, seq):
    admit(gate, 3)
    assert admit(gate, seq) == "out of order"


def test_another_bundle_is_refused_and_changes_nothing(gate):
    assert admit(gate, 9, bundle="abd") == "other bundle"
    assert admit(gate, 1) is None


def test_a_new_pipeline_may_count_from_one_again(gate):
    admit(gate, 9)
    assert admit(gate, 1, pipeline=2) is None


def test_what_is_left_of_the_pipeline_before_is_past(gate):
    admit(gate, 9)
    admit(gate, 1, pipeline=2)
    assert admit(gate, 10, pipeline=1) == "past pipeline"
    assert admit(gate, 2, pipeline=2) is None


def test_work_for_an_old_sentence_is_past_once_a_new_one_was_heard(gate):
    admit(gate, 1, instruction=5)
    gate.hear(Instruction("other", 6))
    assert admit(gate, 2, instruction=5) == "past instruction"
    assert admit(gate, 3, instruction=6) is None


def test_work_that_was_admitted_is_past_if_a_sentence_comes_meanwhile(gate):
    admit(gate, 1, instruction=5)
    gate.hear(Instruction("", 6))
    assert gate.still_wanted(instruction=5, stamp_ns=0, now_ns=0) == "past instruction"


def test_work_for_a_sentence_that_was_not_heard_of_yet_is_news(gate):
    gate.hear(Instruction("one", 5))
    assert admit(gate, 1, instruction=6) is None
    gate.hear(Instruction("two", 6))
    assert admit(gate, 2, instruction=6) is None


def test_hearing_late_of_a_sentence_that_work_has_overtaken_does_not_bring_it_back(gate):
    admit(gate, 1, instruction=5)
    admit(gate, 2, instruction=6)
    gate.hear(Instruction("late", 5))
    assert admit(gate, 3, instruction=6) is None


def test_a_sentence_without_a_number_drops_nothing(gate):
    gate.hear(Instruction("one", 0))
    assert admit(gate, 1, instruction=0) is None
    gate.hear(Instruction("two", 0))
    assert admit(gate, 2, instruction=0) is None


def test_an_observation_beyond_its_life_is_too_old(gate):
    assert admit(gate, 1, age_s=1.9) is None
    assert admit(gate, 2, age_s=2.1) == "too old"


def test_it_may_grow_too_old_while_it_is_worked_on(gate):
    assert gate.still_wanted(instruction=5, stamp_ns=0, now_ns=3 * SECOND) == "too old"


def test_memory_of_past_numbers_is_bounded():
    numbers = Succession()
    for number in range(1, 10 * REMEMBERED):
        numbers.see(number)
    assert len(numbers._past) == REMEMBERED
    assert numbers.past(10 * REMEMBERED - 2)
