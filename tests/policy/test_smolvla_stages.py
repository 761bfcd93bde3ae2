# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Stages joined by rings: the same bits as in one process, whichever slots they go through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace as Message

import numpy as np
import pytest

from omni_ros.policy.flow import Stopped
from omni_ros.policy.observation import Observation
from omni_ros.policy.smolvla import SmolVLAPolicy
from omni_ros.policy.vision_stage import VisionEncoder
from omni_ros.policy.fusion_stage import FusionBackbone
from omni_ros.policy.head_stage import ActionHead
from omni_ros.tensors import RingCache, TensorRing, TensorWriter, open_tensors

TASK = "stack the red cups"


@pytest.fixture
def policy(run_bundle, made_set) -> SmolVLAPolicy:
    return run_bundle(folder=made_set("three_cameras") / "fp32.bundle")


@dataclass
class Pipeline:
    """The three stages with a ring of three slots between each two."""

    encoder: VisionEncoder
    backbone: FusionBackbone
    head: ActionHead
    images: TensorWriter
    prefix: TensorWriter
    rings: RingCache
    inline: bool = False

    def infer(self, observation: Observation, seed: int) -> np.ndarray:
        from omni_ros.policy.noise import noise

        present = [name for name, image in observation.images.items() if image is not None]
        slots = self.images.begin()
        for index, name in enumerate(present):
            self.encoder.prepare(observation.images[name], camera=name)
            self.encoder.run(slots[f"image_{index}"])
        self.images.commit()
        names = [f"image_{index}" for index in range(len(present))]
        tokens = open_tensors(self.images.handles(Message, names, inline=self.inline), self.rings)

        self.backbone.set_prompt(TASK)
        self.backbone.set_state(observation.state)
        self.backbone.bind_images([tokens.arrays[name] for name in names])
        self.backbone.set_cameras(len(present))
        views = self.prefix.begin()
        self.backbone.bind_outputs(views)
        self.backbone.run()
        np.copyto(views["valid"], self.backbone.valid)
        tokens.check()
        self.prefix.commit()

        prefix = open_tensors(self.prefix.handles(Message, inline=self.inline), self.rings)
        self.head.bind_prefix(prefix.arrays)
        self.head.set_valid(prefix.arrays["valid"])
        drawn = noise(self.head.shape, seed=seed, stamp_ns=observation.stamp_ns)
        actions = self.head.denoise(drawn).copy()
        prefix.check()
        return actions


@pytest.fixture
def pipeline(policy, tmp_path: Path) -> Iterator[Pipeline]:
    bundle = policy.bundle
    encoder, backbone, head = VisionEncoder(bundle), FusionBackbone(bundle), ActionHead(bundle)
    shape = encoder.shape
    images = [Message(name=f"image_{slot}", dtype="float32", shape=shape)
              for slot in range(backbone.layout.slots)]
    prefix = [*backbone.program.outputs,
              Message(name="valid", dtype="float32", shape=backbone.valid.shape)]
    rings = [
        TensorRing.create(what, slots=3, slot_bytes=TensorWriter.bytes_needed(specs), folder=tmp_path)
        for what, specs in (("image_tokens", images), ("prefix", prefix))
    ]
    yield Pipeline(encoder, backbone, head, TensorWriter(rings[0], images),
                   TensorWriter(rings[1], prefix), RingCache(folder=tmp_path))
    for stage in (encoder, backbone, head):
        stage.program.close()
    for ring in rings:
        ring.close()


def observe(policy: SmolVLAPolicy, seed: int, missing: tuple[str, ...] = ()) -> Observation:
    rng = np.random.default_rng(seed)
    images = {name: rng.integers(0, 256, (60, 80, 3), np.uint8) for name in policy.cameras}
    state = rng.normal(0, 30, policy.manifest.dimensions.state).astype(np.float32)
    return Observation({**images, **dict.fromkeys(missing)}, state, stamp_ns=7 + seed)


def expected(policy: SmolVLAPolicy, observation: Observation) -> np.ndarray:
    return policy.infer(observation, TASK, seed=1).normalised


@pytest.mark.parametrize("inline", [False, True])
def test_stages_joined_by_rings_give_the_same_bits_slot_after_slot(policy, pipeline, inline):
    pipeline.inline = inline
    for seed in range(7):
        observation = observe(policy, seed)
        wanted = expected(policy, observation)
        assert np.array_equal(pipeline.infer(observation, 1)[:, :wanted.shape[1]], wanted)


def test_a_camera_that_comes_and_goes_changes_nothing_but_its_own_slot(policy, pipeline):
    last = policy.cameras[-1]
    for seed, missing in enumerate([(), (last,), (), (last,), policy.cameras[1:], ()]):
        observation = observe(policy, seed, missing)
        wanted = expected(policy, observation)
        assert np.array_equal(pipeline.infer(observation, 1)[:, :wanted.shape[1]], wanted)


def test_nothing_is_copied_on_the_way(policy, pipeline):
    pipeline.infer(observe(policy, 0), 1)
    memory = pipeline.prefix.ring.memory(1)
    for name, array in pipeline.backbone.keys_values.items():
        assert np.shares_memory(array, memory)
        assert pipeline.backbone.program.output(name) is array
    for name in pipeline.backbone.keys_values:
        assert not pipeline.head.program.input(name).flags.writeable  # the reader's own mapping


def test_a_released_stage_is_back_on_memory_of_its_own(policy, pipeline, tmp_path):
    pipeline.infer(observe(policy, 0), 1)
    for stage in (pipeline.encoder, pipeline.backbone, pipeline.head):
        stage.release()
    memory = [ring.memory(slot) for ring in (pipeline.images.ring, pipeline.prefix.ring)
              for slot in range(3)]
    for stage in (pipeline.encoder, pipeline.backbone, pipeline.head):
        program = stage.program
        for array in [*(program.input(spec.name) for spec in program.inputs),
                      *(program.output(spec.name) for spec in program.outputs)]:
            assert array.flags.writeable
            assert not any(np.shares_memory(array, slot) for slot in memory)
        program.run()


def test_more_image_tokens_than_slots_are_refused(pipeline):
    with pytest.raises(ValueError, match="4 arrays of image tokens; expected at most 3"):
        pipeline.backbone.bind_images([pipeline.backbone.images[0]] * 4)


@pytest.mark.parametrize("bind", ["bind_outputs", "bind_prefix"])
def test_a_missing_tensor_is_named(pipeline, bind):
    arrays = dict(pipeline.backbone.keys_values)
    name, _ = arrays.popitem()
    stage = pipeline.backbone if bind == "bind_outputs" else pipeline.head
    with pytest.raises(ValueError, match=f"{name} missing"):
        getattr(stage, bind)(arrays)


def test_the_head_needs_no_arrays_of_another_stage(policy):
    head = ActionHead(policy.bundle)
    assert np.isfinite(head.denoise(np.ones(head.shape, np.float32))).all()
    head.program.close()


def test_the_head_stops_between_two_steps_and_can_begin_again(policy):
    head = ActionHead(policy.bundle)
    drawn = np.ones(head.shape, np.float32)
    whole = head.denoise(drawn).copy()
    asked = []
    with pytest.raises(Stopped, match="before step 2 of"):
        head.denoise(drawn, stop=lambda: asked.append(1) or len(asked) == 2)
    np.testing.assert_array_equal(head.denoise(drawn, stop=lambda: False), whole)
    head.program.close()
