# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is left of a chunk is laid on the times of the next, and dropped where it means nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.policy.leftover import Leftover

DT = 66_666_667
START = 1_700_000_000 * 10**9


def rows(chunk=6, width=2):
    return np.arange(chunk * width, dtype=np.float32).reshape(chunk, width)


@pytest.fixture
def left():
    leftover = Leftover(6, DT)
    leftover.keep(rows(), START, 1)
    return leftover


def test_before_a_first_chunk_there_is_nothing():
    assert Leftover(6, DT).at(START, 1) is None


def test_whole_rows_that_have_passed_are_cut_off(left):
    assert (left.at(START + 2 * DT, 1) == rows()[2:]).all()


def test_between_two_rows_the_rest_is_laid_on_the_times_of_the_new_one(left):
    got = left.at(START + 2 * DT + DT // 4, 1)
    assert got.dtype == np.float32
    assert got == pytest.approx(rows()[2:5] + 0.25 * 2, abs=1e-5)


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 30), st.integers(1, 10**9), st.integers(1, 40 * 10**9))
def test_a_steady_motion_goes_on_as_if_there_were_no_new_chunk(chunk, dt_ns, passed_ns):
    leftover = Leftover(chunk, dt_ns)
    due = (np.arange(chunk) + 1) * dt_ns  # each row's value is its time
    leftover.keep(due[:, None].astype(np.float32), START, 1)
    got = leftover.at(START + passed_ns, 1)
    if got is None:
        assert passed_ns > (chunk - 1) * dt_ns
        return
    wanted = passed_ns + (np.arange(len(got)) + 1) * dt_ns
    assert got[:, 0] == pytest.approx(wanted, rel=1e-5)
    assert wanted[-1] <= due[-1] < wanted[-1] + dt_ns


@pytest.mark.parametrize("later", [6 * DT, 6 * DT + 1, 600 * DT])
def test_a_chunk_that_is_over_leaves_nothing(left, later):
    assert left.at(START + later, 1) is None


def test_of_a_last_row_half_gone_nothing_is_left(left):
    assert left.at(START + 5 * DT + 1, 1) is None


def test_another_instruction_has_no_use_for_it(left):
    assert left.at(START + DT, 2) is None
    assert left.at(START + DT, 1) is None  # and it stays forgotten


@pytest.mark.parametrize("earlier", [0, 1, DT, 10**12])
def test_a_clock_that_went_back_leaves_nothing(left, earlier):
    assert left.at(START - earlier, 1) is None


def test_what_was_forgotten_is_gone(left):
    left.forget()
    assert left.at(START + DT, 1) is None


def test_the_newest_chunk_counts(left):
    left.keep(rows() + 100, START + DT, 1)
    assert (left.at(START + 2 * DT, 1) == rows()[1:] + 100).all()


@pytest.mark.parametrize(("chunk", "dt_ns"), [(0, DT), (6, 0), (6, -1)])
def test_impossible_sizes_are_refused(chunk, dt_ns):
    with pytest.raises(ValueError, match="both above 0"):
        Leftover(chunk, dt_ns)
