# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from types import SimpleNamespace as Message

import pytest

from omni_ros.stages import DROPS, Gate, Instruction
from omni_ros.stages.gate import (
    LONGEST_NAME,
    LONGEST_SENTENCE,
    MOST_TIMINGS,
    REMEMBERED,
    check_content,
    hear,
    newest,
    read_sentence,
)

SECOND = 1_000_000_000
LIFE_S = 2
#: Another sentence for each number, where the number is what matters.
TEXTS = {5: "five", 6: "six"}


@pytest.fixture
def gate() -> Gate:
    return Gate("abc", life_ns=LIFE_S * SECOND)


def admit(gate: Gate, seq: int, *, bundle: str = "abc", pipeline: int = 1, instruction: int = 5,
          text: str | None = None, age_s: float = 0.1, now_s: float = 1000.0, valid: bool = True
          ) -> str | None:
    """Show a hand-off to the gate, and have it accepted if it was admitted and is `valid`."""
    now = round(now_s * SECOND)
    said = Instruction(TEXTS.get(instruction, "?") if text is None else text, instruction)
    reason = gate.admit(bundle=bundle, pipeline=pipeline, seq=seq, instruction=said,
                        stamp_ns=now - round(age_s * SECOND), now_ns=now)
    assert reason is None or reason in DROPS
    if reason is None and valid:
        gate.accept(pipeline=pipeline, seq=seq, instruction=said, now_ns=now)
    return reason


def still_wanted(gate: Gate, *, instruction: int = 5, age_s: float = 0.0) -> str | None:
    return gate.still_wanted(instruction=Instruction(TEXTS[instruction], instruction),
                             stamp_ns=0, now_ns=round(age_s * SECOND))



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
    gate.hear(Instruction("six", 6))
    assert admit(gate, 2, instruction=5) == "past instruction"
    assert admit(gate, 3, instruction=6) is None


def test_work_that_was_admitted_is_past_if_a_sentence_comes_meanwhile(gate):
    admit(gate, 1, instruction=5)
    gate.hear(Instruction("", 6))
    assert still_wanted(gate, instruction=5) == "past instruction"


def test_work_for_a_sentence_that_was_not_heard_of_yet_is_news(gate):
    gate.hear(Instruction("five", 5))
    assert admit(gate, 1, instruction=6) is None
    gate.hear(Instruction("six", 6))
    assert admit(gate, 2, instruction=6) is None


def test_hearing_late_of_a_sentence_that_work_has_overtaken_does_not_bring_it_back(gate):
    admit(gate, 1, instruction=5)
    admit(gate, 2, instruction=6)
    gate.hear(Instruction("five", 5))
    assert admit(gate, 3, instruction=6) is None
    assert admit(gate, 4, instruction=5) == "past instruction"


def test_the_same_sentence_said_again_drops_nothing(gate):
    gate.hear(Instruction("five", 5))
    admit(gate, 1, instruction=5)
    for number in range(100, 100 + 3 * REMEMBERED):
        gate.hear(Instruction("five", number))
        assert still_wanted(gate, instruction=5) is None
    assert admit(gate, 2, instruction=5) is None
    gate.hear(Instruction("six", 6))
    assert still_wanted(gate, instruction=5) == "past instruction"
    assert admit(gate, 3, instruction=5) == "past instruction"


def test_a_sentence_between_that_only_this_stage_heard_does_not_block_the_first_stage(gate):
    """With a depth of one either side may miss a sentence that was replaced at once."""
    gate.hear(Instruction("five", 5))
    admit(gate, 1, instruction=5)
    gate.hear(Instruction("six", 6))
    gate.hear(Instruction("five", 7))
    assert admit(gate, 2, instruction=5) is None


def test_work_for_what_was_heard_last_is_never_past_whatever_came_between(gate):
    gate.hear(Instruction("six", 6))
    admit(gate, 1, instruction=6)
    assert admit(gate, 2, instruction=5) is None, "news"
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
    assert still_wanted(gate, age_s=3.0) == "too old"


def test_a_hand_off_that_was_not_in_order_blocks_nothing(gate):
    """Another encoder, or anything that speaks on the topic: its tensors do not fit."""
    admit(gate, 1)
    assert admit(gate, 2**63, pipeline=9, instruction=9, valid=False) is None
    assert admit(gate, 2**63, instruction=9, valid=False) is None
    assert admit(gate, 2) is None


def test_a_second_encoder_that_ends_gives_way_to_the_first_after_a_chunks_life(gate):
    admit(gate, 1, instruction=5)
    assert admit(gate, 1, pipeline=9, instruction=9, now_s=1001) is None
    assert admit(gate, 2, instruction=5, now_s=1002) == "past pipeline"
    assert admit(gate, 3, instruction=5, now_s=1001 + LIFE_S + 0.1) is None
    assert admit(gate, 4, instruction=5, now_s=1001 + LIFE_S + 0.2) is None


def test_a_number_far_ahead_does_not_block_its_pipeline_for_good(gate):
    admit(gate, 2**63)
    assert admit(gate, 1, now_s=1001) == "out of order"
    assert admit(gate, 2, now_s=1000 + LIFE_S + 0.1) is None


def test_after_the_clock_went_back_any_pipeline_may_follow(gate):
    admit(gate, 9)
    assert admit(gate, 1, now_s=10.0) is None


def test_memory_of_past_numbers_is_bounded(gate):
    for number in range(1, 10 * REMEMBERED):
        gate.hear(Instruction(str(number), number))
        admit(gate, 2 * number, pipeline=number // 100, instruction=number + 10_000)
    assert all(len(past) <= REMEMBERED for past in (
        gate._past_pipelines, gate._past_heard, gate._past_worked))


def message(*, sec: int = 1, nanosec: int = 0, instruction: str = "go", names=("intake",)
            ) -> Message:
    stamp = Message(sec=sec, nanosec=nanosec)
    return Message(header=Message(stamp=stamp), instruction=instruction,
                   timings=[Message(stage=name) for name in names])


def test_a_hand_off_that_says_what_can_be_is_in_order():
    check_content(message())


@pytest.mark.parametrize("fields, said", [
    ({"sec": -1}, "its stamp is -1 s"),
    ({"sec": 2**31 - 1, "nanosec": 2**32 - 1}, "4294967295 ns"),
    ({"instruction": "x" * (LONGEST_SENTENCE + 1)}, f"at most {LONGEST_SENTENCE}"),
    ({"names": ["intake"] * (MOST_TIMINGS + 1)}, f"at most {MOST_TIMINGS}"),
    ({"names": ["x" * (LONGEST_NAME + 1)]}, f"at most {LONGEST_NAME}"),
])
def test_what_cannot_be_is_refused_with_what_came_and_what_was_expected(fields, said):
    with pytest.raises(ValueError, match=said):
        check_content(message(**fields))


def test_a_sentence_is_used_without_the_space_around_it():
    assert read_sentence("  touch it \n") == "touch it"


def test_what_was_said_last_is_what_has_the_highest_number():
    said = [Instruction("", 0), Instruction("b", 7), Instruction("a", 3)]
    assert newest(said) == Instruction("b", 7)
    assert newest(said[:1]) is None


def test_the_same_sentence_said_again_is_not_another_instruction():
    said, now, fault = hear(Instruction("touch it", 5), " touch it ", 6)
    assert (said, now, fault) == (Instruction("touch it", 6), Instruction("touch it", 5), "")


@pytest.mark.parametrize("text", ["take it", ""])
def test_another_sentence_is(text):
    said, now, _ = hear(Instruction("touch it", 5), text, 6)
    assert said == now == Instruction(text, 6)


def test_a_sentence_that_is_too_long_stops_and_says_why():
    _, now, fault = hear(Instruction("touch it", 5), "x" * (LONGEST_SENTENCE + 1), 6)
    assert now == Instruction("", 6)
    assert f"{LONGEST_SENTENCE + 1} characters" in fault


def test_that_nothing_is_to_be_done_is_news_to_whom_nothing_was_said():
    assert hear(Instruction(), "", 6)[1] == Instruction("", 6)
