# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Prompts and their tokens equal the reference's; a cut prompt is never silent."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from omni_ros.policy.tokens import (
    PromptTokenizer,
    image_tokens_of,
    newline_prompt,
    pad_token_of,
    state_prompt,
)

pytest.importorskip("tokenizers")

DATA = Path(__file__).parents[1] / "data"
SMOLVLA_SETS = sorted(DATA.glob("oracles/smolvla_*"))
GEMMA = DATA / "policy/tokenizer"
PROMPTS = json.loads((DATA / "oracles/blocks_given/pi05_prompts.json").read_text())


def tokenizer(folder, max_length=48, **more):
    return PromptTokenizer(folder / "tokenizer.json", max_length=max_length,
                           pad_token=pad_token_of(folder), **more)


@pytest.mark.parametrize("folder", SMOLVLA_SETS, ids=lambda folder: folder.name)
def test_a_reference_set_s_task_gives_its_tokens_and_mask(folder):
    task = str(np.load(folder / "tensors/inputs.npz")["task"])
    reference = np.load(folder / "tensors/preprocessed.npz")
    config = json.loads((folder / "checkpoint/config.json").read_text())
    tokens = tokenizer(folder / "vlm", config["tokenizer_max_length"],
                       padding=config["pad_language_to"])(newline_prompt(task))
    expected, mask = reference["tokens"][0], reference["token_mask"][0]
    np.testing.assert_array_equal(tokens.ids[:len(expected)], expected)
    np.testing.assert_array_equal(tokens.mask[:len(expected)], mask)
    np.testing.assert_array_equal(tokens.trimmed(), expected[mask])
    assert not tokens.mask[len(expected):].any()
    assert len(tokens.ids) == config["tokenizer_max_length"]


def test_pi0_s_task_gives_its_tokens_with_bos():
    reference = np.load(DATA / "policy/pi0.npz")
    tokens = tokenizer(GEMMA)(newline_prompt(str(reference["task"])))
    np.testing.assert_array_equal(tokens.ids, reference["tokens"])
    np.testing.assert_array_equal(tokens.mask, reference["token_mask"])


def test_pi05_s_task_and_state_give_its_tokens():
    reference = np.load(DATA / "policy/pi05.npz")
    prompt = state_prompt(str(reference["task"]), reference["state_normalised"])
    tokens = tokenizer(GEMMA, 200)(prompt)
    np.testing.assert_array_equal(tokens.ids, reference["tokens"])
    np.testing.assert_array_equal(tokens.mask, reference["token_mask"])


@pytest.mark.parametrize("case", PROMPTS, ids=lambda case: repr(case["task"]))
def test_pi05_prompts_equal_the_reference(case):
    assert state_prompt(case["task"], np.array(case["state"], np.float32)) == case["prompt"]


def test_pi05_of_lerobot_0_4_writes_the_padding_too():
    prompt = state_prompt("go", np.array([-1.0]), padded_width=4)
    assert prompt == "Task: go, State: 0 128 128 128;\nAction: "


def test_a_task_gets_exactly_one_newline():
    assert newline_prompt("go") == newline_prompt("go\n") == "go\n"


def test_a_prompt_that_fits_exactly_is_not_truncated():
    full = tokenizer(GEMMA, 48)("pick up the cube\n")
    exact = tokenizer(GEMMA, full.count)("pick up the cube\n")
    assert exact.mask.all() and not exact.truncated


def test_a_longer_prompt_is_cut_with_a_warning_that_has_both_numbers(caplog):
    small = tokenizer(GEMMA, 5)
    whole = tokenizer(GEMMA, 48)("pick up the red cube\n")
    with caplog.at_level(logging.WARNING):
        tokens = small("pick up the red cube\n")
    assert tokens.truncated and (tokens.count, tokens.full_count) == (5, whole.count)
    np.testing.assert_array_equal(tokens.ids, whole.ids[:5])
    assert f"{whole.count} tokens, the policy takes 5" in caplog.text


def test_the_same_cut_prompt_warns_once(caplog):
    small = tokenizer(GEMMA, 5)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert small("pick up the red cube\n").truncated
    assert len(caplog.records) == 1


def test_cutting_one_prompt_leaves_the_next_whole():
    small = tokenizer(GEMMA, 5)
    small("pick up the red cube\n")
    assert not small("a\n").truncated


def test_padding_can_stand_on_the_left():
    right, left = tokenizer(GEMMA), tokenizer(GEMMA, padding_side="left")
    np.testing.assert_array_equal(left("go\n").trimmed(), right("go\n").trimmed())
    assert left("go\n").mask[-1] and not left("go\n").mask[0]


def test_the_tokens_around_a_picture_are_named_by_the_backbone():
    folder = SMOLVLA_SETS[-1] / "vlm"
    vocabulary = tokenizer(folder)
    assert [vocabulary.token_id(text) for text in image_tokens_of(folder)] == [3, 6]


def test_an_unknown_token_is_refused_by_name():
    with pytest.raises(ValueError, match="no token '<nothing>'"):
        tokenizer(GEMMA).token_id("<nothing>")


def test_a_missing_tokenizer_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="tokenizer.json is not there"):
        PromptTokenizer(tmp_path / "tokenizer.json", max_length=8, pad_token=0)


def test_a_garbled_tokenizer_file_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(b"\x00garbage")
    with pytest.raises(ValueError, match="tokenizer.json is no tokenizer"):
        PromptTokenizer(tmp_path / "tokenizer.json", max_length=8, pad_token=0)


def test_a_folder_without_a_padding_token_is_named(tmp_path):
    with pytest.raises(ValueError, match="no pad_token in"):
        pad_token_of(tmp_path)


def test_a_padding_token_may_be_an_object(tmp_path):
    (tmp_path / "special_tokens_map.json").write_text('{"pad_token": {"content": "<p>"}}')
    assert pad_token_of(tmp_path) == "<p>"


@pytest.mark.parametrize("wrong", [{"padding_side": "up"}, {"padding": "none"}, {"max_length": 0}])
def test_an_unknown_parameter_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        tokenizer(GEMMA, **wrong)
