# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""π0 and π0.5 from bundles: what is theirs, in the classes that run all policies."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from omni_ros.bundles import BundleError, MemoryShortage, open_bundle, policy_checks
from omni_ros.bundles.memory import check_memory
from omni_ros.openpi.served import ServedBundle
from omni_ros.openpi.serving import read_request
from omni_ros.policy.flow_policy import FlowPolicy
from omni_ros.policy.observation import Observation
from omni_ros.policy.prefix import PRESENT, UNUSED

TOKENIZER = Path(__file__).resolve().parents[1] / "data" / "oracles" / "pi0_given" / "tokenizer"
NAMES = "shoulder:rad,elbow:rad,gripper:normalised"
SENTENCE = "stack the red cups"
rng = np.random.default_rng(2)
IMAGES = {name: rng.integers(0, 256, (40, 50, 3), np.uint8)
          for name in ("base_0_rgb", "left_wrist_0_rgb")}
STATE = np.array([3.0, -8.0, 0.5], np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a policy by name; each is exported once."""
    for module in ("torch", "executorch.exir", "safetensors", "tokenizers"):
        pytest.importorskip(module)
    from omni_ros.models.export.bundle import export_checkpoint
    from omni_ros.models.pi0.random_checkpoint import TINY, as_pi05, write_checkpoint

    policies = []

    @lru_cache
    def make(name: str) -> FlowPolicy:
        folder = tmp_path_factory.mktemp("pi0") / name
        config = replace(TINY, state=3)
        options = {
            "pi05": {}, "pi0": {},
            "pi05 of LeRobot 0.4": {"lerobot_compat": "lerobot-0.4"},
            "relative": {"relative": "except:gripper"},
            "int4": {"recipe": "int4"},
        }[name]
        checkpoint = write_checkpoint(
            folder, as_pi05(config) if "pi05" in name else config, tokenizer=TOKENIZER, cameras=2)
        export_checkpoint(checkpoint, folder / "a.bundle", joints=NAMES, isolate=False, **options)
        policies.append(FlowPolicy(folder / "a.bundle"))
        return policies[-1]

    yield make
    for policy in policies:
        policy.close()


def infer(policy, *, images=IMAGES, state=STATE, **options):
    options.setdefault("seed", 4)
    return policy.infer(Observation(images, state, 7), SENTENCE, **options)


@pytest.mark.parametrize("name", ["pi0", "pi05"])
def test_the_same_goes_in_and_the_same_comes_out(made, name):
    first, second = infer(made(name)), infer(made(name))
    np.testing.assert_array_equal(first.actions, second.actions)
    assert np.isfinite(first.actions).all() and first.actions.shape == (6, 3)
    assert np.abs(infer(made(name), seed=5).actions - first.actions).max() > 1e-3


@pytest.mark.parametrize("name", ["pi0", "pi05"])
def test_the_programs_decide_what_the_network_does(made, name):
    """The network is LeRobot's, see tests/models/test_pi0_parity.py; these are other sizes of it."""
    import torch

    from omni_ros.models.common.sampling import sample_actions
    from omni_ros.models.pi0.load import build, load_checkpoint

    policy = made(name)
    noise = np.random.default_rng(5).standard_normal(policy.head.shape).astype(np.float32)
    given = {**IMAGES, "left_wrist_0_rgb": None}
    result = infer(policy, images=given, noise=noise, seed=None)
    folder = policy.bundle.root.parent
    model = build(load_checkpoint(folder / "checkpoint", backbone=folder / "tokenizer"))
    policy.encoder.prepare(IMAGES["base_0_rgb"], camera="base_0_rgb")
    tokens = policy.backbone.tokens
    wanted = sample_actions(
        model, [torch.from_numpy(policy.encoder.pixels), None], [PRESENT, UNUSED], tokens.ids,
        np.arange(len(tokens.ids)) < tokens.count, torch.from_numpy(policy.backbone.state[0]),
        torch.from_numpy(noise)).numpy()
    assert np.abs(wanted).max() > 0.5
    np.testing.assert_allclose(
        result.normalised, wanted[:, :policy.manifest.dimensions.action], rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("name", ["pi0", "pi05"])
def test_the_state_moves_the_actions(made, name):
    moved = infer(made(name), state=STATE + 30.0)
    assert np.abs(moved.normalised - infer(made(name)).normalised).max() > 1e-4


@pytest.mark.parametrize("name", ["pi0", "pi05"])
def test_a_camera_that_is_missing_is_masked_and_its_order_does_not_matter(made, name):
    alone = infer(made(name), images={**IMAGES, "left_wrist_0_rgb": None})
    assert alone.masked_cameras == ("left_wrist_0_rgb",)
    backbone = made(name).backbone
    tokens = backbone.layout.image_tokens
    assert backbone.valid[:tokens].all() and not backbone.valid[tokens:2 * tokens].any()


def test_a_head_is_run_again_on_newer_joints_with_the_prefix_it_has(made):
    """As if the whole policy had been asked with the old pictures and the new joints."""
    policy = made("pi0")
    noise = rng.normal(size=policy.head.shape).astype(np.float32)
    whole = infer(policy, state=STATE + 5.0, seed=None, noise=noise)
    infer(policy, seed=None, noise=noise)
    policy.head.set_state(STATE + 5.0)
    again = policy.head.denoise(noise)[:, :3]
    np.testing.assert_array_equal(again, whole.normalised)


def test_only_a_pi0s_head_takes_the_state(made):
    assert made("pi0").head.takes_state
    assert not made("pi05").head.takes_state


def test_the_prompt_of_a_pi05_names_the_bins_of_the_normalised_state(made):
    policy = made("pi05")
    infer(policy)
    normalised = policy.backbone.state[0, :3]
    bins = np.floor((normalised + 1) * 128).astype(int)
    assert policy.backbone._prompt == (
        f"Task: {SENTENCE}, State: {' '.join(map(str, bins))};\nAction: ")


def test_the_prompt_of_lerobot_04_names_padding_as_well(made):
    policy = made("pi05 of LeRobot 0.4")
    assert policy.manifest.image.pad_value == -3.0
    infer(policy)
    words = policy.backbone._prompt.partition("State: ")[2].partition(";")[0].split()
    assert len(words) == 32 and words[3:] == ["128"] * 29


def test_a_prompt_that_names_the_state_needs_one(made):
    policy = made("pi05")
    policy.backbone._state_known = False
    with pytest.raises(ValueError, match="expected set_state before set_prompt"):
        policy.backbone.set_prompt(SENTENCE)
    infer(policy)


def test_relative_actions_are_anchored_at_the_observations_state(made):
    policy, absolute = made("relative"), made("pi0")
    assert policy.manifest.conventions.relative == (True, True, False)
    chunk = infer(policy)
    plain = policy.head._normaliser.inverse(chunk.normalised)
    np.testing.assert_allclose(chunk.actions, plain + STATE * [1, 1, 0], rtol=1e-6)
    assert not absolute.head.relative


def test_a_plan_that_is_followed_is_laid_on_the_new_observation(made):
    """What was decided relative to where the arm was means the same places now."""
    policy = made("relative")
    old = infer(policy)
    moved = STATE + np.array([10.0, -4.0, 0.0], np.float32)
    new = infer(policy, state=moved, leftover=old.normalised, delay=6, anchor=STATE)
    free = infer(policy, state=moved)
    held, unheld = (np.abs(chunk.actions - old.actions).max() for chunk in (new, free))
    assert held < 0.5 * unheld
    with pytest.raises(ValueError, match="expected that state as anchor"):
        infer(policy, leftover=old.normalised)


def test_int4_holds_the_backbone_and_leaves_the_rest_to_int8(made):
    manifest = made("int4").manifest
    assert {name: entry.recipe for name, entry in manifest.programs.items()} == {
        "vision_encoder": "int8", "fusion_backbone": "int4", "action_head": "int8"}
    assert all(entry.delegates == {"XnnpackBackend": 1} and not entry.leftover
               for entry in manifest.programs.values())
    assert np.isfinite(infer(made("int4")).actions).all()


def test_memory_that_is_short_is_told_with_need_and_have(made, monkeypatch):
    """A π0 of real size on a machine with 4 GB."""
    manifest = made("pi0").manifest
    sizes = {"vision_encoder": 418, "fusion_backbone": 1876, "action_head": 2500}
    programs = {name: replace(entry, constants_bytes=sizes[name] * 10**6)
                for name, entry in manifest.programs.items()}
    real = replace(manifest, programs=programs, memory=type(manifest.memory).of(programs))
    monkeypatch.setattr("omni_ros.bundles.memory.memory_left", lambda root=None: 4 * 10**9)
    with pytest.raises(MemoryShortage, match=r"needs 4[78]\d\d MB, this process can have 4000 MB"):
        check_memory(real)
    check_memory(real, programs=("fusion_backbone",))


def test_a_manifest_that_says_the_state_is_elsewhere_is_refused(made):
    manifest = made("pi0").manifest
    wrong = replace(manifest, prefix=replace(manifest.prefix, state="prompt"))
    with pytest.raises(BundleError, match="prefix.state is 'prompt', in a pi0 it is 'suffix'"):
        policy_checks.check(wrong)


def test_a_bundle_verifies_with_its_golden_vectors(made):
    open_bundle(made("pi05").bundle.root)


def test_a_server_of_a_pi0_answers_what_the_policy_decides(made):
    policy = made("pi0")
    served = ServedBundle(policy)
    assert served.metadata["family"] == "pi0"
    request = read_request(
        {"images": IMAGES, "state": STATE, "prompt": SENTENCE, "seed": 4, "stamp_ns": 7}, served)
    np.testing.assert_array_equal(served.infer(request).actions, infer(policy).actions)


def test_the_manifest_keeps_what_was_asked_for(made):
    options = json.loads(json.dumps(made("relative").manifest.provenance.options))
    assert options["relative"] == "except:gripper"
