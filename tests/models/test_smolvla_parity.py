# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Our SmolVLA against every tensor LeRobot's own computed (float32, CPU)."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from omni_ros.models.smolvla.load import build  # noqa: E402
from omni_ros.models.smolvla.policy import Trace  # noqa: E402
from omni_ros.models.smolvla.prefix import UNUSED  # noqa: E402

SAME_ARITHMETIC = 1e-5
TOLERANCE = 1e-4


@pytest.fixture
def trace(oracle):
    trace = Trace()
    trace.actions = oracle.run(trace)
    return trace


def furthest(ours, theirs) -> float:
    ours = ours.numpy() if isinstance(ours, torch.Tensor) else np.stack([x.numpy() for x in ours])
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max())


def test_the_vision_tower_gives_lerobots_hidden_state(oracle):
    with torch.no_grad():
        ours = [oracle.model.vision_encoder.features(pixels) for pixels in oracle.pixels]
    assert furthest(ours, oracle.tensors["prefix"]["vision_last_hidden"][:, 0]) <= SAME_ARITHMETIC


def test_image_tokens_are_lerobots(oracle, trace):
    theirs = oracle.tensors["prefix"]["image_embs"][:, 0]
    assert furthest(trace.image_tokens, theirs) <= SAME_ARITHMETIC


def test_the_prefix_is_lerobots(oracle, trace):
    theirs = oracle.tensors["prefix"]["prefix_embs"][0]
    assert furthest(trace.prefix[oracle.rows], theirs) <= TOLERANCE


def test_the_prefix_counts_the_tokens_lerobot_counts(oracle):
    _, mask = oracle.prompt
    valid = oracle.model.layout.valid(oracle.slots, mask)
    theirs = oracle.tensors["prefix"]["prefix_pad_masks"][0]
    assert np.array_equal(valid[oracle.rows] > 0, theirs)
    left_out = np.delete(valid, oracle.rows)
    assert not left_out.any()


def test_attention_among_valid_tokens_is_lerobots(oracle):
    _, mask = oracle.prompt
    backbone = oracle.model.fusion_backbone
    valid = torch.from_numpy(oracle.model.layout.valid(oracle.slots, mask))
    ours = backbone.mask(valid)[0].numpy() == 0
    theirs = oracle.tensors["prefix"]["prefix_att_2d"][0]
    assert np.array_equal(ours[np.ix_(oracle.rows, oracle.rows)], theirs)


@pytest.mark.parametrize("kind", ["keys", "values"])
def test_keys_and_values_of_valid_tokens_are_lerobots(oracle, trace, kind):
    theirs = oracle.tensors["prefix"][{"keys": "prefix_k", "values": "prefix_v"}[kind]][:, 0]
    counts = oracle.tensors["prefix"]["prefix_pad_masks"][0]
    ours = [layer[oracle.rows][counts] for layer in getattr(trace, kind)]
    assert furthest(ours, theirs[:, counts]) <= SAME_ARITHMETIC


def test_padding_gets_even_weights_as_in_lerobot_where_the_prefix_is_as_long(oracle, trace):
    theirs = oracle.tensors["prefix"]["prefix_k"][:, 0]
    if theirs.shape[1] != oracle.model.layout.length:
        pytest.skip("LeRobot's prefix was shorter: padding rows are spread over fewer tokens")
    assert furthest(trace.keys, theirs) <= SAME_ARITHMETIC


def test_the_experts_input_is_lerobots_at_every_step(oracle, trace):
    theirs = oracle.tensors["steps"]["suffix_embs"][:, 0]
    assert furthest(trace.suffix, theirs) <= SAME_ARITHMETIC


def test_every_velocity_is_lerobots(oracle, trace):
    assert furthest(trace.velocities, oracle.tensors["steps"]["v_t"][:, 0]) <= SAME_ARITHMETIC


def test_every_intermediate_chunk_is_lerobots(oracle, trace):
    assert furthest(trace.noisy, oracle.tensors["steps"]["x_t"][:, 0]) <= SAME_ARITHMETIC


def test_actions_are_lerobots(oracle, trace):
    outputs = oracle.tensors["outputs"]
    assert furthest(trace.actions, outputs["actions_padded"][0]) <= SAME_ARITHMETIC
    width = oracle.checkpoint.config.action
    assert furthest(trace.actions[:, :width], outputs["actions_normalised"][0]) <= SAME_ARITHMETIC


def test_what_lies_in_a_masked_slot_or_a_padded_prompt_changes_nothing(oracle):
    tokens, mask = oracle.prompt
    other = np.where(mask, tokens, (tokens + 7) % oracle.checkpoint.config.text.vocabulary)
    pixels = [
        image if slot == "present" else torch.ones_like(image)
        for image, slot in zip(oracle.pixels, oracle.slots, strict=True)
    ]
    changed = oracle.run(prompt=(other, mask), pixels=pixels)
    assert torch.equal(changed, oracle.run())


def test_a_program_with_a_slot_more_gives_the_same_actions(oracle):
    wider = build(oracle.checkpoint, oracle.model.slots + 1)
    actions = oracle.run(
        model=wider, slots=[*oracle.slots, UNUSED], pixels=[*oracle.pixels, None]
    )
    assert float((actions - oracle.run()).abs().max()) <= SAME_ARITHMETIC


# How arch.json's numbers were made: an image inverted, 1 added to the normalised state, another
# task (its text is not recorded), the noise's sign turned; the largest change of a true action.


def moved(oracle, **changed) -> float:
    width = oracle.checkpoint.config.action
    return float((oracle.run(**changed) - oracle.run())[:, :width].abs().max())


def test_each_camera_moves_the_actions_as_far_as_in_lerobot(oracle):
    made = oracle.arch["sensitivity_max_abs"]
    present = [key for key in oracle.arch["camera_order"] if key in made]
    assert present
    for slot, key in enumerate(present):
        rows, columns, _ = oracle.tensors["inputs"][f"image/{key}"].shape
        pixels = [image.clone() for image in oracle.pixels]
        height, width = pixels[slot].shape[1:]
        ratio = max(rows / height, columns / width)
        top, left = height - int(rows / ratio), width - int(columns / ratio)
        pixels[slot][:, top:, left:] *= -1
        assert moved(oracle, pixels=pixels) == pytest.approx(made[key], rel=1e-3)


def test_the_state_moves_the_actions_as_far_as_in_lerobot(oracle):
    state = oracle.state.clone()
    state[: oracle.checkpoint.config.state] += 1
    expected = oracle.arch["sensitivity_max_abs"]["state"]
    assert moved(oracle, state=state) == pytest.approx(expected, rel=1e-3)


def test_the_noise_moves_the_actions_as_far_as_in_lerobot(oracle):
    expected = oracle.arch["sensitivity_max_abs"]["noise"]
    assert moved(oracle, noise=-oracle.noise) == pytest.approx(expected, rel=1e-3)


def test_another_task_moves_the_actions_about_as_far_as_in_lerobot(oracle):
    tokens, mask = oracle.prompt
    other = np.where(mask, np.random.default_rng(0).integers(7, 200, len(tokens)), tokens)
    expected = oracle.arch["sensitivity_max_abs"]["task"]
    assert expected / 3 < moved(oracle, prompt=(other, mask)) < expected * 3
