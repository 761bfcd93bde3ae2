# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Real-time chunking equals the reference where it should, and differs where that is wrong."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.policy.flow import FlowSampler
from omni_ros.policy.rtc import SCHEDULES, RtcConfig, RtcGuide, guidance_weight, prefix_weights

DATA = Path(__file__).parents[1] / "data"
BLOCKS = np.load(DATA / "oracles/blocks_given/blocks.npz")
SMOLVLA_SETS = sorted(DATA.glob("oracles/smolvla_*"))
each_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


def guide(leftover, delay, chunk=20, width=4, **config):
    made = RtcGuide(RtcConfig(**config), chunk=chunk, width=width)
    made.begin(None if leftover is None else np.asarray(leftover, np.float32), delay=delay)
    return made


@each_schedule
def test_weights_equal_the_reference_for_every_window(schedule):
    for index, (start, end, total) in enumerate(BLOCKS["rtc/cases_start_end_total"]):
        weights = prefix_weights(schedule=schedule, start=start, end=end, total=total)
        np.testing.assert_allclose(weights, BLOCKS[f"rtc/weights_{schedule}_{index}"],
                                   rtol=0, atol=2e-7)


@each_schedule
@pytest.mark.parametrize("folder", SMOLVLA_SETS, ids=lambda folder: folder.name)
def test_a_reference_set_s_leftover_gives_its_weights(folder, schedule):
    rtc = np.load(folder / "tensors/rtc.npz")
    chunk = len(rtc["weights_LINEAR"])
    made = guide(rtc["prev_chunk_left_over"][0], int(rtc["inference_delay"]), chunk=chunk, width=32,
                 schedule=schedule, execution_horizon=int(rtc["execution_horizon"]))
    np.testing.assert_allclose(made.weights, rtc[f"weights_{schedule}"], rtol=0, atol=2e-7)


@pytest.mark.parametrize("padding", ["last", "zero"])
def test_guided_velocities_equal_the_reference(padding):
    made = guide(BLOCKS["rtc/prev"][0], 3, max_guidance_weight=5.0, padding=padding)
    for index, t in enumerate(BLOCKS["rtc/times"]):
        result = made(BLOCKS["rtc/x_t"][0], BLOCKS["rtc/v_t"][0], float(t))
        np.testing.assert_allclose(result, BLOCKS[f"rtc/guided_{index}"][0], rtol=1e-6, atol=1e-6)


@settings(derandomize=True, deadline=None)
@given(st.sampled_from(SCHEDULES), st.integers(0, 70), st.integers(0, 70), st.integers(1, 60))
def test_weights_never_rise_and_stay_within_0_and_1(schedule, start, end, total):
    weights = prefix_weights(schedule=schedule, start=start, end=end, total=total)
    assert weights.shape == (total,) and weights.dtype == np.float32
    assert ((weights >= 0) & (weights <= 1)).all() and (np.diff(weights) <= 0).all()
    assert (weights[:min(start, end)] == 1).all() and (weights[end:] == 0).all()


@pytest.mark.parametrize("t, expected", [(1.0, 10.0), (0.5, 2.0), (0.3, 2.7619), (0.0, 0.0)])
def test_the_guidance_weight_follows_the_formula_up_to_its_maximum(t, expected):
    assert guidance_weight(t, maximum=10.0) == pytest.approx(expected, rel=1e-4)


def test_the_paper_s_window_ends_where_the_old_plan_does():
    leftover = np.ones((12, 4))
    lerobot = guide(leftover, 3, execution_horizon=8)
    paper = guide(leftover, 3, execution_horizon=8, window="paper")
    assert np.flatnonzero(lerobot.weights)[-1] == 7
    assert np.flatnonzero(paper.weights)[-1] == 20 - 8 - 1


def test_an_old_plan_that_ends_early_goes_on_with_its_last_row():
    x, v = np.zeros((20, 4), np.float32), np.zeros((20, 4), np.float32)
    result = guide(np.full((2, 4), 3.0), 6, schedule="ONES", execution_horizon=10)(x, v, 0.5)
    np.testing.assert_allclose(result[:10], -2.0 * 3.0)
    np.testing.assert_array_equal(result[10:], 0.0)


def test_on_request_the_window_ends_with_the_old_plan_instead():
    made = guide(np.full((2, 4), 3.0), 6, padding="zero", execution_horizon=10)
    np.testing.assert_array_equal(made.weights, [1, 1] + 18 * [0])


def test_columns_beyond_the_action_width_are_drawn_to_zero():
    x, v = np.full((20, 4), 2.0, np.float32), np.zeros((20, 4), np.float32)
    result = guide(np.full((20, 3), 2.0), 4, schedule="ONES")(x, v, 0.5)
    np.testing.assert_array_equal(result[:10, :3], 0.0)
    np.testing.assert_allclose(result[:10, 3], 4.0)


@pytest.mark.parametrize("leftover", [None, np.empty((0, 4))])
def test_a_first_chunk_is_not_guided(leftover):
    v = np.ones((20, 4), np.float32)
    made = guide(leftover, 0)
    assert not made.active and made(v, v, 0.5) is v


@pytest.mark.parametrize("delay", [None, 2.0, "3"])
def test_a_delay_that_is_no_integer_is_refused(delay):
    with pytest.raises(TypeError, match="expected an integer"):
        guide(np.ones((5, 4)), delay)


def test_a_numpy_integer_is_a_delay():
    assert (guide(np.ones((20, 4)), np.int64(4)).weights[:4] == 1).all()


def test_rows_played_before_the_chunk_comes_but_past_the_window_are_counted():
    assert guide(np.ones((20, 4)), 13, execution_horizon=10).uncovered == 3
    assert guide(np.ones((20, 4)), 4, execution_horizon=10).uncovered == 0


def test_a_leftover_longer_than_the_chunk_is_cut():
    long = np.repeat(np.arange(30.0)[:, None], 4, axis=1)
    made, same = guide(long, 4), guide(long[:20], 4)
    x = np.ones((20, 4), np.float32)
    np.testing.assert_array_equal(made(x, x, 0.5), same(x, x, 0.5))


def test_a_leftover_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        guide(np.full((3, 4), np.nan), 1)


@pytest.mark.parametrize("shape", [(3, 5), (3,)])
def test_a_leftover_of_a_wrong_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"expected \[rows, at most 4\]"):
        guide(np.ones(shape), 1)


@each_schedule
def test_held_rows_end_up_on_the_old_plan(schedule):
    """Where the network asks for something else, ten guided steps still agree on the held rows."""
    rng = np.random.default_rng(0)
    leftover = rng.normal(size=(15, 4)).astype(np.float32)
    target = rng.normal(size=(20, 4)).astype(np.float32)
    noise = rng.normal(size=(20, 4)).astype(np.float32)
    made = guide(leftover, 4, schedule=schedule)
    sampler = FlowSampler(steps=10, chunk=20, width=4)
    free = sampler(noise, lambda x, step, t: (x - target) / np.float32(t)).copy()
    held = sampler(noise, lambda x, step, t: (x - target) / np.float32(t), guide=made)
    assert np.abs(held[:4] - leftover[:4]).max() < 0.35 * np.abs(free[:4] - leftover[:4]).max()
    np.testing.assert_allclose(held[10:], free[10:], atol=1e-5)


def test_the_velocity_given_is_left_as_it_was():
    v = np.ones((20, 4), np.float32)
    guide(np.zeros((20, 4)), 4)(np.zeros((20, 4), np.float32), v, 0.5)
    assert (v == 1).all()


@pytest.mark.parametrize("wrong", [
    {"schedule": "COSINE"}, {"window": "all"}, {"padding": "mirror"}, {"execution_horizon": 0},
    {"max_guidance_weight": math.inf}, {"max_guidance_weight": 0.0},
])
def test_an_impossible_setting_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RtcConfig(**wrong)


def test_a_paper_window_that_leaves_no_old_plan_is_refused():
    with pytest.raises(ValueError, match="20 of a chunk of 20"):
        RtcGuide(RtcConfig(window="paper", execution_horizon=20), chunk=20, width=4)
