# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which tokens of the prefix count, and where they are."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.policy.prefix import (
    EMPTY,
    PRESENT,
    UNUSED,
    PrefixLayout,
    action_positions,
    prefix_positions,
    prefix_rope,
    slot_kinds,
)
from omni_ros.policy.rope import RopeTable, rope_tables

LAYOUT = PrefixLayout(slots=2, image_tokens=3, language=4, special_tokens=False)


def test_announced_empty_cameras_follow_the_present_ones_and_the_rest_is_unused():
    assert slot_kinds(1, empty=1, slots=4) == [PRESENT, EMPTY, UNUSED, UNUSED]
    assert slot_kinds(2, empty=0, slots=2) == [PRESENT, PRESENT]


def test_a_picture_does_not_take_the_place_of_an_empty_camera():
    with pytest.raises(ValueError, match="2 cameras for 2 image slots, 1 of them"):
        slot_kinds(2, empty=1, slots=2)


def test_actions_come_right_after_the_tokens_that_count():
    valid = LAYOUT.valid([PRESENT, UNUSED], np.array([True, True, False, False]))
    assert prefix_positions(valid)[-1] == 5
    assert action_positions(valid, 3).tolist() == [6, 7, 8]


def test_picked_rows_are_those_computed_one_by_one():
    valid = LAYOUT.valid([PRESENT, UNUSED], np.array([True, False, False, False]))
    cos, sin = (np.empty((LAYOUT.length, 4), np.float32) for _ in range(2))
    RopeTable(LAYOUT.length, 8).pick(prefix_positions(valid), cos, sin)
    expected = prefix_rope(valid, 8)
    assert np.array_equal(cos, expected[0]) and np.array_equal(sin, expected[1])


def test_a_position_before_the_first_token_counts_as_the_first():
    cos, sin = (np.empty((2, 4), np.float32) for _ in range(2))
    RopeTable(4, 8).pick(np.array([-1, 3]), cos, sin)
    assert np.array_equal(cos, rope_tables(np.array([0, 3]), 8)[0])


def test_the_base_decides_the_slowest_turn():
    slow, fast = (rope_tables(np.array([1]), 8, base=base)[1][0, -1] for base in (1e5, 1e4))
    assert slow < fast
