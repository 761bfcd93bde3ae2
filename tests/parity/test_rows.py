# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How a comparison is judged."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from omni_ros.parity.rows import compare, effect


def test_the_largest_difference_is_what_counts():
    row = compare("x", np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.5]), 0.4)
    assert row.difference == 0.5 and not row.passed
    assert compare("x", np.array([3.0]), np.array([3.5]), 0.5).passed


def test_a_relative_tolerance_is_for_the_size_of_the_difference():
    theirs = np.array([3.0, 4.0])
    row = compare("x", theirs + np.array([0.3, 0.4]), theirs, 0.1 + 1e-9, relative=True)
    assert row.value == pytest.approx(0.1) and row.passed
    assert row.difference == pytest.approx(0.4)


def test_what_is_not_a_number_does_not_pass():
    row = compare("x", np.array([np.nan, 0.0]), np.zeros(2), 1.0)
    assert not row.passed
    json.dumps(row.data(), allow_nan=False)


def test_another_shape_does_not_pass_and_both_are_said():
    row = compare("x", np.zeros((2, 3)), np.zeros((3, 2)), 1.0)
    assert not row.passed and row.note == "shape [2, 3], the reference has [3, 2]"


def test_equal_zeros_pass_a_relative_tolerance():
    assert compare("x", np.zeros(3), np.zeros(3), 0.0, relative=True).passed


@pytest.mark.parametrize(
    ("moved", "passed"), [(0.0, False), (0.4, False), (0.6, True), (1.9, True), (2.1, False)]
)
def test_an_input_has_to_move_the_actions_about_as_far_as_recorded(moved, passed):
    assert effect("state", moved, 1.0, 2.0).passed is passed


def test_an_effect_that_is_not_a_number_does_not_pass():
    assert not effect("state", math.nan, 1.0, 2.0).passed
