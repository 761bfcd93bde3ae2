# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from omni_ros.speech.qwen3.prompt import Prompts


def apart(one: np.ndarray, other: np.ndarray) -> float:
    assert one.shape == other.shape
    return float(np.abs(one - other).max())


@pytest.mark.parametrize("case", [0, 1])
def test_the_prompt_of_a_whole_text_is_the_references(oracle, prompts, case):
    wanted = oracle.cases[case]
    made = prompts.whole(wanted["text_ids"], "english", "")
    assert apart(made, wanted["prompt_embeds_nonstream"]) <= 1e-5


@pytest.mark.parametrize("case", [0, 1])
def test_the_prompt_of_a_text_that_comes_beside_the_frames_is_the_references(oracle, prompts, case):
    wanted = oracle.cases[case]
    made = prompts.begin(int(wanted["text_ids"][0]), "english", "")
    assert apart(made, wanted["prompt_embeds_stream"]) <= 1e-5


def test_a_speaker_is_one_position_more(prompts):
    without, given = (prompts.begin(65, "english", speaker) for speaker in ("", "Robo"))
    assert len(given) == len(without) + 1 == prompts.head_length("english", "robo") + 1
    np.testing.assert_array_equal(given[:6], without[:6])
    np.testing.assert_array_equal(given[-3:], np.concatenate([
        (prompts.pad + prompts._codec.rows([2301]))[:1], without[-2:]])[-3:])  # fmt: skip


def test_no_language_is_one_position_less_and_tells_the_talker_not_to_think_of_one(prompts):
    auto = prompts.begin(65, "auto", "")
    assert len(auto) == len(prompts.begin(65, "english", "")) - 1
    np.testing.assert_array_equal(auto[3], prompts.pad + prompts._codec.rows([2155])[0])


@pytest.mark.parametrize("language, id_", [("auto", 2074), ("chinese", 2074), ("english", 2050)])
def test_a_speaker_of_a_dialect_speaks_it_where_chinese_may_be_meant(prompts, language, id_):
    assert prompts._tags(language, "dylan") == [2154, 2156, id_, 2157, 2878]


def test_dialects_are_not_offered_as_languages(prompts):
    assert prompts.ids.spoken_languages() == ("auto", "chinese", "english", "german", "japanese")


def test_unknown_languages_and_speakers_are_refused_with_those_there_are(prompts):
    with pytest.raises(ValueError, match="'klingon'; expected one of auto, chinese, english"):
        prompts.begin(65, "klingon", "")
    with pytest.raises(ValueError, match="'bob'; expected one of robo"):
        prompts.begin(65, "english", "bob")


def test_an_empty_text_makes_no_prompt(prompts):
    with pytest.raises(ValueError, match="no text tokens"):
        prompts.whole([], "english", "")


def test_an_instruction_comes_before_everything_else(prompts):
    plain = prompts.begin(65, "english", "")
    told = Prompts(prompts.ids, prompts._text, prompts._codec, (256, 1, 2, 257, 10))
    made = told.begin(65, "english", "")
    np.testing.assert_array_equal(made[5:], plain)
    np.testing.assert_array_equal(made[:5], prompts._text.rows([256, 1, 2, 257, 10]))
    assert told.head_length("english", "") == prompts.head_length("english", "") + 5
