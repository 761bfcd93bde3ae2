# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The Euler loop and the time embedding equal the reference's."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.policy.flow import FlowSampler, Stopped, step_times, time_embedding

DATA = Path(__file__).parents[1] / "data"
SMOLVLA_SETS = sorted(DATA.glob("oracles/smolvla_*"))
each_set = pytest.mark.parametrize("folder", SMOLVLA_SETS, ids=lambda folder: folder.name)


def silu(x):
    return x / (1 + np.exp(-x))


@each_set
def test_step_times_are_the_reference_s_to_the_bit(folder):
    times = np.load(folder / "tensors/steps.npz")["t"]
    np.testing.assert_array_equal(step_times(len(times)).astype(np.float64), times)


@each_set
def test_with_the_recorded_velocities_every_x_is_the_reference_s_to_the_bit(folder):
    steps = np.load(folder / "tensors/steps.npz")
    noise = np.load(folder / "tensors/inputs.npz")["noise"][0]
    expected = np.load(folder / "tensors/outputs.npz")["actions_padded"][0]
    sampler = FlowSampler(steps=len(steps["t"]), chunk=noise.shape[0], width=noise.shape[1])

    def velocity(x, step, t):
        np.testing.assert_array_equal(x, steps["x_t"][step, 0])
        assert t == steps["t"][step]
        return steps["v_t"][step, 0]

    np.testing.assert_array_equal(sampler(noise, velocity), expected)


@each_set
def test_the_time_embedding_gives_the_reference_s_action_embeddings(folder):
    load_file = pytest.importorskip("safetensors.numpy").load_file
    weights = load_file(folder / "checkpoint/model.safetensors")
    config = json.loads((folder / "checkpoint/config.json").read_text())
    steps = np.load(folder / "tensors/steps.npz")

    def linear(x, name):
        return x @ weights[f"model.{name}.weight"].T + weights[f"model.{name}.bias"]

    width = weights["model.action_time_mlp_out.weight"].shape[0]
    embedding = time_embedding(step_times(len(steps["t"])), width=width,
                               min_period=config["min_period"], max_period=config["max_period"])
    actions = linear(steps["x_t"][:, 0], "action_in_proj")
    both = np.concatenate(
        [actions, np.broadcast_to(embedding[:, None], actions.shape)], axis=-1
    )
    result = linear(silu(linear(both, "action_time_mlp_in")), "action_time_mlp_out")
    np.testing.assert_allclose(result, steps["suffix_embs"][:, 0], rtol=0, atol=5e-6)


def test_pi05_s_time_condition_equals_the_reference():
    pi05 = np.load(DATA / "policy/pi05.npz")

    def linear(x, name):
        return x @ pi05[f"{name}.weight"].T + pi05[f"{name}.bias"]

    embedding = time_embedding(step_times(10), width=48, min_period=0.004, max_period=4.0)
    result = silu(linear(silu(linear(embedding, "time_mlp_in")), "time_mlp_out"))
    np.testing.assert_allclose(result, pi05["adarms_cond"], rtol=0, atol=2e-6)


def test_the_slowest_sine_turns_once_in_the_longest_period():
    row = time_embedding([0.25], width=4, min_period=0.004, max_period=1.0)[0]
    np.testing.assert_allclose(row[[1, 3]], [math.sin(math.pi / 2), math.cos(math.pi / 2)],
                               atol=1e-7)


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 1000))
def test_any_number_of_steps_starts_at_1_and_ends_one_step_above_0(steps):
    times = step_times(steps)
    assert len(times) == steps and times[0] == 1.0
    assert times[-1] == pytest.approx(1 / steps, rel=1e-4)
    assert (np.diff(times) < 0).all()


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(1, 300))
def test_a_constant_velocity_is_followed_exactly_one_unit_of_time(steps):
    sampler = FlowSampler(steps=steps, chunk=2, width=3)
    result = sampler(np.ones((2, 3), np.float32), lambda x, step, t: np.full_like(x, 5.0))
    np.testing.assert_allclose(result, -4.0, atol=1e-4)


def test_the_noise_is_left_as_it_was():
    noise = np.ones((2, 3), np.float32)
    FlowSampler(steps=3, chunk=2, width=3)(noise, lambda x, step, t: x)
    assert (noise == 1.0).all()


def test_a_guide_s_velocity_is_the_one_used():
    sampler = FlowSampler(steps=1, chunk=1, width=1)
    result = sampler(np.zeros((1, 1), np.float32), lambda x, step, t: x,
                     guide=lambda x, v, t: np.full_like(v, -2.0))
    assert result[0, 0] == 2.0


def test_a_wrong_shape_is_refused_with_both():
    sampler = FlowSampler(steps=2, chunk=4, width=3)
    with pytest.raises(ValueError, match=r"noise is \[4, 2\]; expected \[4, 3\]"):
        sampler(np.zeros((4, 2), np.float32), lambda x, step, t: x)
    with pytest.raises(ValueError, match=r"velocity is \[3\]; expected \[4, 3\]"):
        sampler(np.zeros((4, 3), np.float32), lambda x, step, t: x[0])


@pytest.mark.parametrize("wrong", [{"width": 3}, {"min_period": 0.0}, {"max_period": 0.001}])
def test_an_impossible_embedding_is_refused(wrong):
    with pytest.raises(ValueError, match="time embedding"):
        time_embedding([1.0], **{"width": 4, "min_period": 0.004, "max_period": 4.0, **wrong})


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="steps is 0"):
        step_times(0)


def test_it_gives_up_between_two_steps_when_it_is_told_to():
    steps = []

    def velocity(x, step, t):
        steps.append(step)
        return x

    with pytest.raises(Stopped, match="before step 4 of 10"):
        FlowSampler(steps=10, chunk=2, width=3)(
            np.ones((2, 3), np.float32), velocity, stop=lambda: len(steps) == 3)
    assert steps == [0, 1, 2]
