# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""π0 and π0.5 in PyTorch against every tensor that LeRobot recorded, for every set there is."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from omni_ros.models.common.layers import MASKED_HALF  # noqa: E402
from omni_ros.models.common.sampling import Trace, sample_actions  # noqa: E402
from omni_ros.models.pi0.load import build, load_checkpoint  # noqa: E402
from omni_ros.policy.flow import step_times  # noqa: E402
from omni_ros.policy.prefix import (  # noqa: E402
    PRESENT, UNUSED, PrefixLayout, action_positions, prefix_positions,
)

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"
SETS = sorted(path.name for path in ORACLES.glob("pi0*"))
TOLERANCE = 2e-5


@lru_cache
def read_set(name):
    folder = ORACLES / name
    tensors = {
        path.stem: dict(np.load(path, allow_pickle=False))
        for path in (folder / "tensors").glob("*.npz")
    }
    arch = json.loads((folder / "arch.json").read_text())
    checkpoint = load_checkpoint(
        folder / "checkpoint", vision_heads=arch["tiny"]["vis_heads"])
    made = tensors["preprocessed"]
    slots = sum(key.startswith("pixel_values/") for key in made)
    model = build(checkpoint, slots)
    trace = Trace()
    state = np.zeros(checkpoint.config.max_state, np.float32)
    state[:checkpoint.config.state] = made["state_normalised"][0]
    actions = sample_actions(
        model, [torch.from_numpy(made[f"pixel_values/{i}"][0]) for i in range(slots)],
        [PRESENT if made[f"image_mask/{i}"][0] else UNUSED for i in range(slots)],
        made["tokens"][0], made["token_mask"][0], torch.from_numpy(state),
        torch.from_numpy(tensors["inputs"]["noise"][0]), trace=trace,
    )
    return SimpleNamespace(model=model, checkpoint=checkpoint, trace=trace, actions=actions.numpy(),
                           **tensors)


@pytest.fixture(params=SETS)
def recorded(request):
    return read_set(request.param)


def near(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=TOLERANCE)


def test_image_tokens_are_lerobots(recorded):
    for slot, tokens in enumerate(recorded.trace.image_tokens):
        if recorded.preprocessed[f"image_mask/{slot}"][0]:
            near(tokens, recorded.prefix["image_embs"][slot, 0])


def test_the_prefix_is_lerobots_where_it_counts(recorded):
    valid = recorded.prefix["prefix_pad_masks"][0]
    near(recorded.trace.prefix.numpy()[valid], recorded.prefix["prefix_embs"][0][valid])


def test_keys_and_values_of_every_layer_are_lerobots(recorded):
    valid = recorded.prefix["prefix_pad_masks"][0]
    for kind, ours in (("k", recorded.trace.keys), ("v", recorded.trace.values)):
        theirs = recorded.prefix[f"prefix_{kind}"][:, 0].swapaxes(1, 2)
        near(torch.stack(ours).numpy()[:, valid], theirs[:, valid])


def test_every_steps_suffix_and_velocity_are_lerobots(recorded):
    for step, velocity in enumerate(recorded.trace.velocities):
        near(recorded.trace.suffix[step], recorded.steps["suffix_embs"][step, 0])
        near(velocity, recorded.steps["v_t"][step, 0])


def test_actions_are_lerobots(recorded):
    near(recorded.actions, recorded.outputs["actions_padded"][0])


def test_lengths_positions_and_times_are_lerobots(recorded):
    config, prefix, steps = recorded.checkpoint.config, recorded.prefix, recorded.steps
    valid = prefix["prefix_pad_masks"][0].astype(np.float32)
    assert recorded.model.layout.length == len(valid) == (968 if config.adaptive else 816)
    assert config.suffix == (50 if config.adaptive else 51)
    np.testing.assert_array_equal(prefix_positions(valid), prefix["prefix_position_ids"][0])
    np.testing.assert_array_equal(
        action_positions(valid, config.suffix), steps["suffix_position_ids"][0])
    np.testing.assert_array_equal(step_times(config.steps), steps["t"])
    np.testing.assert_allclose(steps["t"][[0, -1]], [1.0, 0.1], rtol=1e-6)


def test_what_may_be_seen_is_lerobots(recorded):
    valid = torch.from_numpy(recorded.prefix["prefix_pad_masks"][0].astype(np.float32))
    seen = (recorded.model.fusion_backbone.mask(valid)[0] == 0).numpy()
    np.testing.assert_array_equal(seen, recorded.prefix["prefix_att_2d"][0])
    suffix = (recorded.model.action_head.mask(valid)[0] == 0).numpy()
    np.testing.assert_array_equal(suffix, recorded.steps["suffix_att_2d"][0])
    sums = suffix[:, len(valid):].sum(axis=1).tolist()
    adaptive = recorded.checkpoint.config.adaptive
    assert sums == ([50] * 50 if adaptive else [1, *[51] * 50])


def test_one_camera_and_six_tokens_are_262_of_816_positions():
    layout = PrefixLayout(3, 256, 48, special_tokens=False, state=False)
    valid = layout.valid([PRESENT, UNUSED, UNUSED], np.arange(48) < 6)
    assert (valid.sum(), len(valid)) == (262, 816)
    positions = prefix_positions(valid)
    # Masked tokens repeat a position: the prompt follows the one picture directly.
    assert positions[[255, 256, 767, 768, 773, 815]].tolist() == [255, 255, 255, 256, 261, 261]
    assert action_positions(valid, 51)[[0, 50]].tolist() == [262, 312]


def test_masks_survive_float16(recorded):
    """-2.4e38 is -inf there, and a row of nothing but -inf is NaN, which 0 x NaN hands on."""
    valid = torch.zeros(recorded.model.layout.length)
    mask = recorded.model.fusion_backbone.mask(valid).half()
    assert torch.isfinite(mask).all()
    scores = torch.full_like(mask, 300.0) + mask
    assert torch.isfinite(scores).all()
    weights = torch.softmax(scores.float(), dim=-1)
    assert torch.isfinite(weights).all()


def test_a_masked_score_has_no_weight_at_all():
    scores = torch.tensor([5.0, 900.0 + MASKED_HALF])
    assert torch.softmax(scores, dim=0).tolist() == [1.0, 0.0]


def test_what_is_masked_moves_no_action(recorded):
    """Whatever stands in the slot of a camera that is missing."""
    made, model = recorded.preprocessed, recorded.model
    slots = [PRESENT, PRESENT, UNUSED]
    noise = torch.from_numpy(recorded.inputs["noise"][0])
    results = [
        sample_actions(
            model, [torch.from_numpy(made[f"pixel_values/{i}"][0]) for i in range(2)] + [third],
            slots, made["tokens"][0], made["token_mask"][0],
            torch.zeros(recorded.checkpoint.config.max_state), noise, steps=2)
        for third in (None, torch.rand(3, 224, 224))
    ]
    torch.testing.assert_close(*results, rtol=0.0, atol=0.0)
