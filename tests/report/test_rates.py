# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Shares of a count: published values of Wilson's interval, and its bounds."""

from __future__ import annotations

import pytest
from omni_ros.report.rates import share_text, wilson


@pytest.mark.parametrize(
    "successes, tries, low, high",
    # Newcombe 1998 (method 3): 81/263, 15/148, 0/20, 1/29.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611),
     (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_the_published_one(successes, tries, low, high):
    assert wilson(successes, tries) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_of_all_is_that_of_none_mirrored():
    low, high = wilson(0, 50)
    assert wilson(50, 50) == pytest.approx((1 - high, 1 - low))


def test_no_tries_tell_nothing():
    assert wilson(0, 0) == (0.0, 1.0) and share_text(0, 0) == "0/0"


@pytest.mark.parametrize("successes, tries", [(-1, 3), (4, 3)])
def test_a_count_that_cannot_be_is_refused(successes, tries):
    with pytest.raises(ValueError, match=f"{successes} of {tries}"):
        wilson(successes, tries)


def test_a_share_is_told_with_its_count_and_interval():
    assert share_text(98, 100) == "98/100 98 % (93 to 99)"
