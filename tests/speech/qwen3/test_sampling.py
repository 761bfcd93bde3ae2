# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from omni_ros.speech.qwen3.sampling import Draw, FrameCodes, draw, random_source

LOGITS = np.array([0.0, 2.0, 1.0, 2.0, -1.0, 0.5], np.float32)


def drawn(rule: Draw, count: int = 400) -> set[int]:
    source = random_source(7)
    return {draw(LOGITS, rule, source) for _ in range(count)}


def test_greedy_takes_the_first_of_the_largest():
    assert draw(LOGITS, Draw(greedy=True), None) == 1


def test_top_k_keeps_what_equals_the_kth():
    assert drawn(Draw(top_k=1)) == {1, 3}


def test_no_top_k_can_draw_everything():
    assert drawn(Draw(top_k=0, temperature=3.0)) == set(range(6))


def test_top_p_keeps_the_smallest_set_that_holds_it():
    weights = np.exp(LOGITS.astype(float))
    share = (weights[1] + weights[3]) / weights.sum()
    assert drawn(Draw(top_k=0, top_p=share - 0.01, temperature=1.0)) == {1, 3}
    assert drawn(Draw(top_k=0, top_p=share + 0.01, temperature=1.0)) == {1, 2, 3}


def test_top_p_always_leaves_one():
    assert len(drawn(Draw(top_k=0, top_p=1e-9))) == 1


def test_draws_follow_the_probabilities_of_the_tempered_logits():
    source = random_source(3)
    rule = Draw(top_k=0, temperature=0.7)
    counts = np.bincount([draw(LOGITS, rule, source) for _ in range(20_000)], minlength=6)
    weights = np.exp(LOGITS / 0.7)
    assert counts / 20_000 == pytest.approx(weights / weights.sum(), abs=0.012)


def test_the_same_seed_draws_the_same_and_another_draws_other():
    rule = Draw(top_k=0, temperature=3.0)
    first, again, other = ([draw(LOGITS, rule, source) for _ in range(50)]
                           for source in (random_source(5), random_source(5), random_source(6)))
    assert first == again != other


def test_two_parts_of_one_seed_draw_differently():
    assert random_source(5, 0).random() != random_source(5, 1).random()


@pytest.mark.parametrize("logits", [[np.nan, 1.0], [-np.inf, -np.inf], [np.inf, 0.0]])
def test_logits_that_are_no_numbers_are_refused(logits):
    with pytest.raises(ValueError, match="expected a finite number"):
        draw(np.array(logits, np.float32), Draw(greedy=True), None)


@pytest.mark.parametrize("name, value", [("temperature", 0.0), ("top_k", -1), ("top_p", 0.0),
                                         ("top_p", 1.5), ("repetition_penalty", 0.0)])
def test_an_impossible_setting_is_refused_with_its_name(name, value):
    with pytest.raises(ValueError, match=name):
        Draw(**{name: value})


def frame_codes(**changes) -> FrameCodes:
    options = dict(codebook=4, end=6, vocabulary=8, min_frames=2, source=None)
    return FrameCodes(Draw(greedy=True, **changes.pop("rule", {})), **{**options, **changes})


def logits(**values) -> np.ndarray:
    row = np.zeros(8, np.float32)
    for key, value in values.items():
        row[int(key[1:])] = value
    return row


def test_ids_behind_the_codebook_are_never_drawn_but_the_end_is():
    codes = frame_codes(min_frames=0)
    assert codes.draw(logits(_5=9, _7=8, _3=1)) == 3
    assert codes.draw(logits(_5=9, _6=8, _3=1)) is None


def test_the_end_is_not_drawn_before_the_least_number_of_frames():
    codes = frame_codes()
    assert [codes.draw(logits(_6=9, _2=1)) for _ in range(3)] == [2, 2, None]


def test_the_repetition_penalty_pulls_drawn_codes_down_on_both_sides_of_zero():
    codes = frame_codes(rule={"repetition_penalty": 2.0})
    assert codes.draw(logits(_1=3, _2=2)) == 1
    assert codes.draw(logits(_1=3, _2=2)) == 2
    below = np.array([-1.5, -1.0, -1.6, -2.5, -9, -9, -9, -9], np.float32)
    assert codes.draw(below) == 0


def test_the_repetition_penalty_counts_a_code_once_however_often_it_came():
    codes = frame_codes(rule={"repetition_penalty": 1.5})
    for _ in range(3):
        assert codes.draw(logits(_1=3.1, _2=2)) == 1


def test_an_end_within_the_codebook_is_refused():
    with pytest.raises(ValueError, match="ids of this checkpoint's config"):
        frame_codes(end=3)
