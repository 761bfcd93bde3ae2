# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy from a bundle: the same answer however it is asked, nothing copied, nothing kept."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from omni_ros.policy.observation import Observation
from omni_ros.policy.rtc import RtcConfig, RtcGuide
from omni_ros.policy.smolvla import SmolVLAPolicy

TASK = "pick up the red cube and place it in the bin"


@pytest.fixture
def policy(run_bundle) -> SmolVLAPolicy:
    return run_bundle("smolvla_given")


@pytest.fixture
def small(run_bundle, made_set) -> SmolVLAPolicy:
    """One whose pictures are small, so that it is fast."""
    return run_bundle(folder=made_set("three_cameras") / "fp32.bundle")


def observe(policy: SmolVLAPolicy, *, seed: int = 0, size=(96, 128), **changed) -> Observation:
    rng = np.random.default_rng(seed)
    images = {name: rng.integers(0, 256, (*size, 3), np.uint8) for name in policy.cameras}
    state = rng.normal(0, 30, policy.manifest.dimensions.state).astype(np.float32)
    return Observation(**{"images": images, "state": state, "stamp_ns": 5, **changed})


def test_stage_by_stage_gives_the_same_chunk_to_the_bit(policy):
    observation = observe(policy)
    whole = policy.infer(observation, TASK, seed=3)
    noise = policy._noise.copy()

    encoder, backbone, head = policy.encoder, policy.backbone, policy.head
    backbone.set_prompt(TASK)
    backbone.set_state(observation.state)
    backbone.set_cameras(len(observation.images))
    for slot, (name, image) in enumerate(observation.images.items()):
        np.copyto(backbone.images[slot], encoder.encode(image, camera=name))
    backbone.run()
    head.set_valid(backbone.valid)
    actions = head.denoise(noise)
    assert np.array_equal(actions[:, : whole.normalised.shape[1]], whole.normalised)
    assert np.array_equal(head.decode(actions), whole.actions)


def test_the_head_reads_keys_and_values_where_the_backbone_writes_them(policy):
    backbone, head = policy.backbone.program, policy.head.program
    assert len(policy.backbone.keys_values) == 2 * policy.manifest.dimensions.layers
    for name in policy.backbone.keys_values:
        assert head.input(name) is backbone.output(name)


def test_the_backbone_reads_image_tokens_where_the_encoder_writes_them(policy):
    policy.infer(observe(policy), TASK, seed=0)
    last = policy.encoder.program.output(0)
    assert last is policy.backbone.program.input(f"image_{len(policy.cameras) - 1}")


def test_the_same_noise_gives_the_same_bits(policy):
    noise = np.random.default_rng(1).normal(size=policy.head.shape).astype(np.float32)
    first = policy.infer(observe(policy), TASK, noise=noise)
    policy.infer(observe(policy, seed=9), "close the door", seed=1)
    again = policy.infer(observe(policy), TASK, noise=noise)
    assert first.actions.tobytes() == again.actions.tobytes()


def test_a_seed_and_a_stamp_decide_the_noise(policy):
    same = [policy.infer(observe(policy), TASK, seed=4).actions for _ in range(2)]
    other = policy.infer(observe(policy, stamp_ns=6), TASK, seed=4).actions
    assert np.array_equal(*same)
    assert not np.array_equal(same[0], other)


def test_results_may_be_kept(policy):
    first = policy.infer(observe(policy), TASK, seed=4)
    kept = first.actions.copy(), first.normalised.copy()
    policy.infer(observe(policy, seed=8), TASK, seed=5)
    assert np.array_equal(first.actions, kept[0]) and np.array_equal(first.normalised, kept[1])


def test_a_second_chunk_follows_what_is_left_of_the_first(policy):
    first = policy.infer(observe(policy), TASK, seed=1)
    leftover, later = first.normalised[20:], observe(policy, seed=2)
    free = policy.infer(later, TASK, seed=2).normalised
    guided = policy.infer(later, TASK, seed=2, leftover=leftover, delay=4).normalised

    def gap(chunk):
        return float(np.abs(chunk[:4] - leftover[:4]).max())

    assert gap(guided) < gap(free) / 5
    width = policy.manifest.dimensions.action
    config = policy.manifest.rtc
    guide = RtcGuide(
        RtcConfig(config.schedule, config.execution_horizon, config.max_guidance_weight),
        chunk=policy.head.shape[0], width=policy.head.shape[1],
    )
    guide.begin(leftover[:, :width], delay=4)
    assert np.array_equal(policy.infer(later, TASK, seed=2, guide=guide).normalised, guided)


def test_without_a_leftover_nothing_is_guided(policy):
    first = policy.infer(observe(policy), TASK, seed=1)
    policy.infer(observe(policy), TASK, seed=1, leftover=first.normalised[10:], delay=2)
    again = policy.infer(observe(policy), TASK, seed=1)
    assert np.array_equal(first.actions, again.actions)


def test_pictures_of_any_size_are_brought_to_the_policys(policy):
    result = policy.infer(observe(policy, size=(480, 640)), TASK, seed=0)
    height, width = policy.manifest.image.height, policy.manifest.image.width
    fitted = int(480 / (640 / width))
    assert policy.encoder.pixels.shape == (3, height, width)
    assert (policy.encoder.pixels[:, : height - fitted] == -1).all()
    assert policy.encoder.pixels[:, height - fitted:].std() > 0.1
    assert np.isfinite(result.actions).all()


def test_a_prompt_too_long_is_cut_with_a_warning_that_has_both_numbers(policy, caplog):
    task = "pick the red cube " * 60
    with caplog.at_level(logging.WARNING):
        result = policy.infer(observe(policy), task, seed=0)
    assert result.prompt_truncated and result.prompt_tokens >= 300
    assert f"has {result.prompt_tokens} tokens, the policy takes 48" in caplog.text
    assert np.isfinite(result.actions).all()


def test_a_state_of_another_size_is_refused_with_both(policy):
    with pytest.raises(ValueError, match=r"\[7\]; the policy takes \[6\]"):
        policy.infer(observe(policy, state=np.zeros(7, np.float32)), TASK, seed=0)


def test_a_state_that_is_not_finite_is_refused_with_the_entry(policy):
    state = np.array([0, 0, np.nan, 0, 0, 0], np.float32)
    with pytest.raises(ValueError, match="not finite for entry 2"):
        policy.infer(observe(policy, state=state), TASK, seed=0)


def test_unknown_and_missing_cameras_are_listed(policy):
    images = observe(policy).images
    images["gripper"] = images.pop("wrist")
    with pytest.raises(ValueError) as caught:
        policy.infer(observe(policy, images=images), TASK, seed=0)
    for part in ("has top, wrist", "unknown: 'gripper'", "missing: wrist"):
        assert part in str(caught.value)


def test_a_camera_said_to_be_missing_is_masked_and_named(policy):
    both = observe(policy).images
    result = policy.infer(observe(policy, images={**both, "wrist": None}), TASK, seed=0)
    assert result.masked_cameras == ("wrist",)
    assert len(result.timings.vision_encoder) == 1
    again = policy.infer(observe(policy), TASK, seed=0)
    assert again.masked_cameras == () and not np.array_equal(again.actions, result.actions)


def test_what_a_masked_slot_held_before_changes_nothing(policy):
    images = {**observe(policy).images, "wrist": None}
    first = policy.infer(observe(policy, images=images), TASK, seed=0)
    policy.infer(observe(policy, seed=7), TASK, seed=0)
    again = policy.infer(observe(policy, images=images), TASK, seed=0)
    assert np.array_equal(first.actions, again.actions)


def test_no_picture_at_all_is_refused(policy):
    with pytest.raises(ValueError, match="no picture of any camera"):
        policy.infer(observe(policy, images=dict.fromkeys(policy.cameras)), TASK, seed=0)


def test_exactly_one_of_seed_and_noise_is_asked_for(policy):
    with pytest.raises(ValueError, match="neither of seed and noise"):
        policy.infer(observe(policy), TASK)
    with pytest.raises(ValueError, match="both of seed and noise"):
        policy.infer(observe(policy), TASK, seed=1, noise=np.zeros(policy.head.shape))


@pytest.mark.parametrize("noise", [np.zeros((3, 4)), np.full((50, 32), np.inf)])
def test_noise_that_does_not_fit_is_refused(policy, noise):
    with pytest.raises(ValueError, match=r"expected finite values \[50, 32\]"):
        policy.infer(observe(policy), TASK, noise=noise)


def test_a_picture_that_is_no_rgb_is_refused_and_the_next_call_is_right(policy):
    before = policy.infer(observe(policy), TASK, seed=0)
    images = {**observe(policy).images, "wrist": np.zeros((96, 128, 4), np.uint8)}
    with pytest.raises(ValueError, match=r"uint8 \[96, 128, 4\]; expected uint8"):
        policy.infer(observe(policy, images=images), TASK, seed=0)
    assert np.array_equal(policy.infer(observe(policy), TASK, seed=0).actions, before.actions)


def test_warming_up_changes_no_later_chunk(policy):
    before = policy.infer(observe(policy), TASK, seed=4)
    assert policy.warm_up() > 0
    assert np.array_equal(policy.infer(observe(policy), TASK, seed=4).actions, before.actions)


def test_timings_add_up(policy):
    timings = policy.infer(observe(policy), TASK, seed=0).timings
    parts = timings.preprocess + sum(timings.vision_encoder) + timings.fusion_backbone
    parts += timings.action_head + timings.postprocess
    assert len(timings.vision_encoder) == 2 and len(timings.steps) == 10
    assert sum(timings.steps) <= timings.action_head
    assert parts <= timings.total


def test_a_call_allocates_nothing_large(policy):
    observation = observe(policy, size=(480, 640))
    for _ in range(3):
        policy.infer(observation, TASK, seed=0)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        policy.infer(observation, TASK, seed=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All that was alive at once, so no single one was larger.
    assert peak - before < 64 * 1024


def test_five_hundred_chunks_do_not_grow_the_process(small):
    observations = [observe(small, seed=seed) for seed in range(4)]

    def run(chunks: int) -> None:
        leftover = None
        for index in range(chunks):
            result = small.infer(
                observations[index % 4], TASK, seed=index, leftover=leftover, delay=2
            )
            leftover = result.normalised[3:]

    run(100)
    gc.collect()
    before = resident()
    run(500)
    gc.collect()
    assert resident() - before <= 1_000_000


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_robot_needs_no_pytorch(exported):
    code = (
        "import sys\n"
        "from omni_ros.policy.smolvla import SmolVLAPolicy\n"
        f"SmolVLAPolicy({str(exported('smolvla_given', 'fp32'))!r}, threads=1)\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'torch', 'executorch', 'safetensors', 'torchao'}))\n"
        "print([name for name in sys.modules if name.startswith('omni_ros.models')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-P" if sys.version_info >= (3, 11) else "-B", "-c", code],
        capture_output=True, text=True, check=True, timeout=120,
    )
    assert done.stdout.split() == ["[]", "[]"]
