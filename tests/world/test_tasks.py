# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the policy can be asked for, and the sentences that ask for it."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.world.tasks import COLOURS, HELD_OUT, SKILLS, TRAINING, Task, phrase, phrases, task_of

TASKS = [Task(skill, colour) for skill in SKILLS for colour in COLOURS]


@pytest.mark.parametrize("skill", SKILLS)
def test_each_skill_has_eight_sentences_of_training_and_four_held_out(skill):
    assert len(set(TRAINING[skill])) >= 8
    assert len(set(HELD_OUT[skill])) >= 4


def test_no_held_out_sentence_is_a_sentence_of_training():
    training = {text for templates in TRAINING.values() for text in templates}
    held_out = {text for templates in HELD_OUT.values() for text in templates}
    assert not training & held_out


def test_no_sentence_stands_for_two_tasks():
    every = [text for task in TASKS for known in (False, True)
             for text in phrases(task, held_out=known)]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("held_out", [False, True])
def test_each_sentence_leads_back_to_its_task(held_out):
    for task in TASKS:
        for text in phrases(task, held_out=held_out):
            assert task_of(f" {text.capitalize()}. ") == task


def test_an_unknown_sentence_is_no_task():
    assert task_of("make me a sandwich") is None


def test_a_generator_draws_every_sentence_of_a_task():
    random = np.random.default_rng(0)
    task = Task("touch", "red")
    assert {phrase(task, random) for _ in range(300)} == set(phrases(task))


@pytest.mark.parametrize(("skill", "colour"), [("juggle", "red"), ("touch", "pink")])
def test_a_task_that_does_not_exist_is_refused_with_those_that_do(skill, colour):
    with pytest.raises(ValueError, match="touch, pick_up, place.*red, green, blue, yellow"):
        Task(skill, colour)
