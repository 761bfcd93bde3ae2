# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the host computes for the programs."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.models.smolvla.prefix import (
    EMPTY,
    PRESENT,
    UNUSED,
    PrefixLayout,
    action_rope,
    prefix_rope,
    vision_positions,
)

PLAIN = PrefixLayout(slots=2, image_tokens=3, language=4, special_tokens=False)
MARKED = PrefixLayout(slots=2, image_tokens=3, language=4, special_tokens=True)


def test_an_empty_slot_keeps_its_marks_and_an_unused_one_nothing():
    mask = np.array([True, True, False, False])
    valid = MARKED.valid([EMPTY, UNUSED], mask)
    assert valid.tolist() == [1, 1, 0, 0, 0, 1, *[0] * 6, 1, 1, 0, 0, 1]


def test_padding_takes_no_position():
    mask = np.array([True, False, False, False])
    valid = PLAIN.valid([PRESENT, UNUSED], mask)
    cos, _ = prefix_rope(valid, 4)
    assert cos.shape == (PLAIN.length, 2)
    assert cos[-1, 0] == np.float32(np.cos(4.0))  # three image tokens and one word come before


def test_actions_follow_the_valid_prefix():
    valid = PLAIN.valid([PRESENT, UNUSED], np.array([True, False, False, False]))
    cos, sin = action_rope(valid, 2, 4)
    assert cos[:, 0].tolist() == [np.float32(np.cos(5.0)), np.float32(np.cos(6.0))]
    assert sin.dtype == np.float32


def test_slots_and_prompts_of_another_length_are_refused():
    with pytest.raises(ValueError, match="1 image slots given: expected 2"):
        PLAIN.valid([PRESENT], np.ones(4, bool))
    with pytest.raises(ValueError, match="expected \\(4,\\)"):
        PLAIN.valid([PRESENT, PRESENT], np.ones(5, bool))
    with pytest.raises(ValueError, match="'here'"):
        PLAIN.valid([PRESENT, "here"], np.ones(4, bool))


def test_patches_take_the_position_table_in_order():
    assert np.array_equal(vision_positions(32, 32, 32), np.arange(1024))


def test_a_smaller_image_spreads_over_the_position_table():
    assert vision_positions(2, 2, 4).tolist() == [0, 2, 8, 10]


def test_the_shifted_positions_are_those_of_transformers_4_55():
    shifted = vision_positions(4, 4, 4, shifted=True).reshape(4, 4)
    assert shifted[0].tolist() == [0, 0, 1, 2]
    assert shifted[:, 0].tolist() == [0, 0, 4, 8]
