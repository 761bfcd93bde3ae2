# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A bundle for some of a checkpoint's cameras acts as the whole one does with the rest masked."""

from __future__ import annotations

import dataclasses
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.exir")

from omni_ros.models.export.bundle import export_checkpoint  # noqa: E402
from omni_ros.models.smolvla.random_checkpoint import TINY, write_checkpoint  # noqa: E402
from omni_ros.parity.reference import read_reference  # noqa: E402
from omni_ros.parity.policy import parity_rows  # noqa: E402
from omni_ros.policy.observation import Observation  # noqa: E402
from omni_ros.policy.smolvla import SmolVLAPolicy  # noqa: E402

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Return a checkpoint of three cameras, with or without marks around images, and its bundle."""

    @lru_cache
    def made(marks: bool):
        folder = tmp_path_factory.mktemp("three")
        checkpoint = write_checkpoint(
            folder, dataclasses.replace(TINY, special_tokens=marks), cameras=3,
            tokenizer=ORACLES / "smolvla_given" / "vlm",
        )
        export_checkpoint(checkpoint, folder / "whole", joints="raw", isolate=False)
        return checkpoint, folder / "whole"

    return made


def actions(bundle, images, state) -> np.ndarray:
    """Return the normalised actions of a bundle with some pictures, the others being masked."""
    with SmolVLAPolicy(bundle) as policy:
        observation = Observation({**dict.fromkeys(policy.cameras), **images}, state)
        return policy.infer(observation, "stack the red cups", seed=3).normalised


@pytest.mark.parametrize("marks", [False, True], ids=["plain", "marks"])
@pytest.mark.parametrize(("cameras", "kept"), [
    (1, ["camera1"]), (["camera3", "camera2"], ["camera2", "camera3"]),
], ids=["first", "named"])  # fmt: skip
def test_fewer_slots_give_the_actions_of_masked_ones(three, tmp_path, marks, cameras, kept):
    checkpoint, whole = three(marks)
    few = tmp_path / "few"
    manifest = export_checkpoint(checkpoint, few, joints="raw", cameras=cameras, isolate=False)
    assert [camera.name for camera in manifest.cameras] == kept
    assert manifest.prefix.slots == len(kept)
    assert manifest.provenance.options["cameras"] == ",".join(kept)
    rng = np.random.default_rng(1)
    images = {camera: rng.integers(0, 256, (90, 120, 3), np.uint8) for camera in kept}
    state = rng.normal(0, 20, manifest.dimensions.state).astype(np.float32)
    masked = actions(whole, images, state)
    np.testing.assert_allclose(actions(few, images, state), masked, rtol=0, atol=1e-5)


def test_a_bundle_for_the_cameras_of_a_recording_is_still_lerobots(tmp_path):
    folder = ORACLES / "smolvla_given_b"
    export_checkpoint(
        folder / "checkpoint", tmp_path / "few", joints="raw", cameras=["camera1"], isolate=False
    )
    with SmolVLAPolicy(tmp_path / "few") as policy:
        rows = parity_rows(policy, read_reference(folder))
    assert [f"{row.name}: {row.value}" for row in rows if not row.passed] == []


def test_cameras_are_picked_in_a_lowering_process_of_its_own_too(tiny, tmp_path):
    manifest = export_checkpoint(tiny, tmp_path / "few", joints="raw", cameras=["camera1"])
    assert [camera.name for camera in manifest.cameras] == ["camera1"]


def test_renames_of_the_processor_are_applied_to_the_cameras_of_the_bundle(export, tiny):
    path = tiny / "policy_preprocessor.json"
    content = json.loads(path.read_text())
    content["steps"][0]["config"]["rename_map"] = {
        "observation.images.front": "observation.images.camera1"}
    path.write_text(json.dumps(content))
    (camera,) = export().cameras
    assert (camera.name, camera.key) == ("front", "observation.images.camera1")
