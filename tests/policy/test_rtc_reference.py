# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whole chunks, guided and free, equal the reference when the network is the reference's.

The network here is SmolVLA's action expert in NumPy, on the prefix keys and values that the
reference recorded: enough to ask it at the x that guiding leads to, which no recording holds.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from omni_ros.policy.flow import FlowSampler, step_times, time_embedding
from omni_ros.policy.rtc import SCHEDULES, RtcConfig, RtcGuide

DATA = Path(__file__).parents[1] / "data"
SMOLVLA_SETS = sorted(DATA.glob("oracles/smolvla_*"))
each_set = pytest.mark.parametrize("folder", SMOLVLA_SETS, ids=lambda folder: folder.name)


def silu(x):
    return x / (1 + np.exp(-x))


def rotate(x, positions, base=10000.0):
    """Rotary embedding of [rows, heads, size]."""
    half = x.shape[-1] // 2
    angle = positions[:, None] / base ** (np.arange(half) / half)
    sine, cosine = (f(angle)[:, None].astype(np.float32) for f in (np.sin, np.cos))
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def attend(q, k, v, mask):
    """q [rows, heads, size], k and v [columns, kv heads, size], mask [rows, columns]."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("rhd,chd->hrc", q, k) * q.shape[-1] ** -0.5
    scores = np.where(mask, scores, np.finfo(np.float32).min)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    share = scores / scores.sum(-1, keepdims=True)
    return np.einsum("hrc,chd->rhd", share, v).reshape(len(q), -1)


class Expert:
    """x_t and step to v_t, as recorded sets of SmolVLA lay their weights and prefix out."""

    def __init__(self, folder):
        load_file = pytest.importorskip("safetensors.numpy").load_file
        self.weights = load_file(folder / "checkpoint/model.safetensors")
        self.config = json.loads((folder / "checkpoint/config.json").read_text())
        prefix = np.load(folder / "tensors/prefix.npz")
        steps = np.load(folder / "tensors/steps.npz")
        self.keys, self.values = prefix["prefix_k"][:, 0], prefix["prefix_v"][:, 0]
        self.mask = steps["suffix_att_2d"][0]
        self.positions = steps["suffix_position_ids"][0].astype(np.float64)
        width = self.weights["model.action_time_mlp_out.weight"].shape[0]
        self.times = time_embedding(
            step_times(self.config["num_steps"]), width=width,
            min_period=self.config["min_period"], max_period=self.config["max_period"],
        )

    def linear(self, x, name):
        result = x @ self.weights[f"model.{name}.weight"].T
        bias = self.weights.get(f"model.{name}.bias")
        return result if bias is None else result + bias

    def norm(self, x, name):
        scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-5))
        return x * scale * self.weights[f"model.{name}.weight"]

    def __call__(self, x, step, t):
        actions = self.linear(x, "action_in_proj")
        time = np.broadcast_to(self.times[step], actions.shape)
        hidden = self.linear(np.concatenate([actions, time], -1), "action_time_mlp_in")
        hidden = self.linear(silu(hidden), "action_time_mlp_out")
        for index in range(len(self.keys)):
            hidden = self.layer(hidden, index)
        hidden = self.norm(hidden, "vlm_with_expert.lm_expert.norm")
        return self.linear(hidden, "action_out_proj")

    def layer(self, hidden, index):
        name = f"vlm_with_expert.lm_expert.layers.{index}"
        keys, values = self.keys[index], self.values[index]
        rows, size = len(hidden), keys.shape[-1]
        normed = self.norm(hidden, f"{name}.input_layernorm")
        q = self.linear(normed, f"{name}.self_attn.q_proj").reshape(rows, -1, size)
        if index % self.config["self_attn_every_n_layers"] == 0:
            k = self.linear(normed, f"{name}.self_attn.k_proj").reshape(rows, -1, size)
            v = self.linear(normed, f"{name}.self_attn.v_proj").reshape(rows, -1, size)
            k = np.concatenate([keys, rotate(k, self.positions)])
            v = np.concatenate([values, v])
            seen = attend(rotate(q, self.positions), k, v, self.mask)
        else:
            flat_k, flat_v = keys.reshape(len(keys), -1), values.reshape(len(values), -1)
            k = self.linear(flat_k, f"{name}.self_attn.k_proj").reshape(len(keys), -1, size)
            v = self.linear(flat_v, f"{name}.self_attn.v_proj").reshape(len(values), -1, size)
            q = rotate(q, self.positions - self.positions.min())
            seen = attend(q, k, v, self.mask[:, :len(keys)])
        hidden = hidden + self.linear(seen, f"{name}.self_attn.o_proj")
        normed = self.norm(hidden, f"{name}.post_attention_layernorm")
        gate = silu(self.linear(normed, f"{name}.mlp.gate_proj"))
        return hidden + self.linear(gate * self.linear(normed, f"{name}.mlp.up_proj"),
                                    f"{name}.mlp.down_proj")


@each_set
def test_a_free_chunk_equals_the_reference(folder):
    noise = np.load(folder / "tensors/inputs.npz")["noise"][0]
    expert = Expert(folder)
    sampler = FlowSampler(steps=len(expert.times), chunk=noise.shape[0], width=noise.shape[1])
    expected = np.load(folder / "tensors/outputs.npz")["actions_padded"][0]
    np.testing.assert_allclose(sampler(noise, expert), expected, rtol=0, atol=1e-5)


@each_set
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("padding", ["last", "zero"])
def test_a_guided_chunk_equals_the_reference(folder, schedule, padding):
    noise = np.load(folder / "tensors/inputs.npz")["noise"][0]
    rtc = np.load(folder / "tensors/rtc.npz")
    expert = Expert(folder)
    config = RtcConfig(schedule=schedule, execution_horizon=int(rtc["execution_horizon"]),
                       max_guidance_weight=float(rtc["max_guidance_weight"]), padding=padding)
    guide = RtcGuide(config, chunk=noise.shape[0], width=noise.shape[1])
    guide.begin(rtc["prev_chunk_left_over"][0], delay=int(rtc["inference_delay"]))
    sampler = FlowSampler(steps=len(expert.times), chunk=noise.shape[0], width=noise.shape[1])
    expected = rtc[f"out_{schedule}"][0]
    result = sampler(noise, expert, guide=guide)[:, :expected.shape[1]]
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-5)
