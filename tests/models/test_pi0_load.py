# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a π0 or π0.5, in every layout that is met, strictly."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file, save_file  # noqa: E402

from omni_ros.models.common.checkpoint import Relative  # noqa: E402
from omni_ros.models.common.errors import CheckpointError  # noqa: E402
from omni_ros.models.pi0.keys import EXPERT, PALIGEMMA, TEXT, TOKENS, TOKENS_TIED  # noqa: E402
from omni_ros.models.pi0.load import build, load_checkpoint  # noqa: E402
from omni_ros.models.pi0.random_checkpoint import (  # noqa: E402
    REAL, TINY, as_pi05, tensor_shapes, write_checkpoint,
)

TOKENIZER = Path(__file__).resolve().parents[1] / "data" / "oracles" / "pi0_given" / "tokenizer"


@pytest.fixture(params=["pi0", "pi05"])
def config(request):
    return TINY if request.param == "pi0" else as_pi05(TINY)


@pytest.fixture
def folder(tmp_path, config):
    return write_checkpoint(tmp_path, config, tokenizer=TOKENIZER, cameras=2)


def edit(folder, change):
    path = folder / "model.safetensors"
    made = change(load_file(path))
    save_file({name: tensor.contiguous().clone() for name, tensor in made.items()}, path)


def edit_json(path, **changes):
    content = json.loads(path.read_text())
    content.update(changes)
    path.write_text(json.dumps({key: v for key, v in content.items() if v is not ...}))


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0.0, atol=0.0)


def test_sizes_come_from_the_shapes(folder, config):
    assert load_checkpoint(folder).config == config


def test_the_real_sizes_have_the_advertised_number_of_parameters():
    shapes = dict(tensor_shapes(REAL))
    unread = shapes.pop(f"{EXPERT.removesuffix('.model')}.lm_head.weight")
    total = sum(int(np.prod(shape)) for shape in shapes.values())
    assert (len(shapes), total) == (776, 3_238_048_528)
    assert unread == (257152, 1024)


def test_gemmas_norms_multiply_by_one_more_than_is_stored(tmp_path):
    folder = write_checkpoint(tmp_path, tokenizer=TOKENIZER)
    stored = load_file(folder / "model.safetensors")[f"{TEXT}.layers.0.input_layernorm.weight"]
    model = build(load_checkpoint(folder))
    torch.testing.assert_close(
        model.fusion_backbone.layers[0].attention_norm.weight.data, stored + 1.0)


@pytest.mark.parametrize("layout", [
    "without model.", "nested as before transformers 4.52", "compiled", "time MLP by the other name",
    "embed_tokens only", "both copies of the table",
])
def test_every_layout_that_is_met_gives_the_same_network(folder, config, layout):
    before = load_checkpoint(folder)
    wrong = ("time_mlp_", "action_time_mlp_") if config.adaptive else ("action_time_mlp_",
                                                                      "time_mlp_")

    def old_nesting(name):
        for new, old in ((f"{PALIGEMMA}.model.vision_tower.", f"{PALIGEMMA}.vision_tower."),
                         (f"{PALIGEMMA}.model.multi_modal_projector.",
                          f"{PALIGEMMA}.multi_modal_projector."),
                         (f"{TEXT}.", f"{PALIGEMMA}.language_model.model."),
                         (f"{PALIGEMMA}.lm_head.", f"{PALIGEMMA}.language_model.lm_head.")):
            if name.startswith(new):
                return old + name.removeprefix(new)
        return name

    rename = {
        "without model.": lambda name: name.removeprefix("model."),
        "nested as before transformers 4.52": old_nesting,
        "compiled": lambda name: name.replace("model.", "model._orig_mod.", 1),
        "time MLP by the other name": lambda name: name.replace(f"model.{wrong[0]}",
                                                               f"model.{wrong[1]}"),
        "embed_tokens only": lambda name: TOKENS if name == TOKENS_TIED else name,
    }.get(layout, lambda name: name)
    edit(folder, lambda tensors: {rename(name): tensor for name, tensor in tensors.items()})
    if layout == "both copies of the table":
        edit(folder, lambda tensors: {**tensors, TOKENS: tensors[TOKENS_TIED]})
    after = load_checkpoint(folder)
    same(after.state, before.state)
    torch.testing.assert_close(after.token_table, before.token_table, rtol=0.0, atol=0.0)


def test_two_token_tables_that_differ_are_refused(folder):
    edit(folder, lambda tensors: {**tensors, TOKENS: tensors[TOKENS_TIED] + 1.0})
    with pytest.raises(CheckpointError, match="differ, which are one table in training"):
        load_checkpoint(folder)


def test_without_a_token_table_nothing_is_made_up(folder):
    edit(folder, lambda tensors: {n: t for n, t in tensors.items() if n != TOKENS_TIED})
    with pytest.raises(CheckpointError, match="lm_head.weight is missing"):
        load_checkpoint(folder)


@pytest.mark.parametrize("fault", ["missing", "unknown", "misshapen", "not finite"])
def test_a_tensor_at_fault_is_named_and_refused(folder, fault):
    key = f"{EXPERT}.layers.1.mlp.up_proj.weight"

    def change(tensors):
        if fault == "missing":
            tensors.pop(key)
        elif fault == "unknown":
            tensors["model.something.weight"] = torch.zeros(2)
        elif fault == "misshapen":
            tensors[key] = tensors[key][:, :-1]
        else:
            tensors[key][0, 0] = float("nan")
        return tensors

    edit(folder, change)
    name = "model.something.weight" if fault == "unknown" else key
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        load_checkpoint(folder)


def test_the_tensors_of_the_other_kind_are_refused(folder, config):
    edit_json(folder / "config.json", type="pi0" if config.adaptive else "pi05")
    with pytest.raises(CheckpointError, match="the tensors are those of π0"):
        load_checkpoint(folder)


def test_heads_of_an_unknown_vision_tower_are_asked_for(folder, config):
    (folder.parent / "tokenizer" / "config.json").unlink()
    with pytest.raises(CheckpointError, match="pass vision_heads=N"):
        load_checkpoint(folder)
    assert load_checkpoint(folder, vision_heads=2).config == config


def test_a_variant_of_other_sizes_is_refused(folder):
    edit_json(folder / "config.json", paligemma_variant="gemma_2b_lora")
    with pytest.raises(CheckpointError, match="gemma_2b_lora"):
        load_checkpoint(folder)


def openpi(folder, config, *, assets=("trossen",)):
    """Turn a folder into what openpi's conversion writes."""
    for path in folder.glob("policy_*"):
        path.unlink()
    (folder / "config.json").write_text(json.dumps({
        "action_dim": config.max_action, "action_horizon": config.chunk,
        "paligemma_variant": "gemma_2b", "action_expert_variant": "gemma_300m",
        "precision": "bfloat16",
    }))
    edit(folder, lambda tensors: {n.removeprefix("model."): t for n, t in tensors.items()})
    for index, name in enumerate(assets):
        place = folder / "assets" / name
        place.mkdir(parents=True)
        stats = {
            key: {"mean": [index + 1.0] * width, "std": [2.0] * width, "q01": [-1.0] * width,
                  "q99": [3.0] * width}
            for key, width in (("state", config.state), ("actions", config.action))
        }
        (place / "norm_stats.json").write_text(json.dumps({"norm_stats": stats}))
    return folder


# openpi's pictures are 224 pixels wide: 16 patches of 14.
OPENPI = replace(TINY, vision=replace(TINY.vision, patch=14, table_side=16), image_height=224,
                 image_width=224)


@pytest.fixture(params=[False, True], ids=["pi0", "pi05"])
def from_openpi(request, tmp_path):
    config = as_pi05(OPENPI) if request.param else OPENPI
    config = replace(config, max_action=8, max_state=8)
    folder = write_checkpoint(tmp_path, config, tokenizer=TOKENIZER, cameras=3)
    return openpi(folder, config), config


def test_openpis_folder_is_taken_with_its_own_statistics(from_openpi):
    folder, config = from_openpi
    made = load_checkpoint(folder, backbone=folder.parent / "tokenizer")
    assert made.config.adaptive == config.adaptive
    assert made.config.language == (200 if config.adaptive else 48)
    assert (made.config.state, made.config.action) == (config.state, config.action)
    assert [made.camera_names[key] for key in made.cameras] == [
        "base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"]
    state = made.state_statistics
    assert state.mode == ("QUANTILES" if config.adaptive else "MEAN_STD")
    # openpi divides by std + 1e-6, or q99 - q01 + 1e-6, and multiplies by the same.
    spread = state.values["q99"] - state.values["q01"] if config.adaptive else state.values["std"]
    np.testing.assert_allclose(spread, (4.0 if config.adaptive else 2.0) + 1e-6, rtol=1e-7)
    assert state.eps == 0.0


def test_of_several_assets_one_has_to_be_chosen(tmp_path):
    folder = write_checkpoint(tmp_path, OPENPI, tokenizer=TOKENIZER, cameras=3)
    openpi(folder, OPENPI, assets=("trossen", "physical-intelligence/libero"))
    tokenizer = folder.parent / "tokenizer"
    with pytest.raises(CheckpointError, match="physical-intelligence/libero, trossen"):
        load_checkpoint(folder, backbone=tokenizer)
    made = load_checkpoint(folder, backbone=tokenizer, dataset="physical-intelligence/libero")
    assert made.state_statistics.values["mean"][0] == 2.0


def test_an_openpi_folder_without_statistics_is_refused(tmp_path):
    folder = openpi(write_checkpoint(tmp_path, OPENPI, tokenizer=TOKENIZER), OPENPI, assets=())
    with pytest.raises(CheckpointError, match="no assets/ID/norm_stats.json"):
        load_checkpoint(folder, backbone=folder.parent / "tokenizer")


def relative_checkpoint(tmp_path, **step):
    config = {"enabled": True, "exclude_joints": [], "action_names": None, **step}
    return write_checkpoint(tmp_path, tokenizer=TOKENIZER, relative=config)


def test_relative_actions_are_taken_with_lerobots_rule_of_which(tmp_path):
    names = ["shoulder", "Elbow", "left_gripper"]
    made = load_checkpoint(relative_checkpoint(
        tmp_path, exclude_joints=["gripper"], action_names=names))
    assert made.relative == Relative(tuple(names), ("gripper",))
    # Without names LeRobot makes all of them relative, grippers too.
    other = load_checkpoint(relative_checkpoint(tmp_path / "b", exclude_joints=["gripper"]))
    assert other.relative == Relative(None, ())


def test_relative_actions_that_nothing_makes_absolute_are_refused(tmp_path):
    folder = relative_checkpoint(tmp_path)
    post = folder / "policy_postprocessor.json"
    post.write_text(post.read_text().replace('"enabled": true', '"enabled": false'))
    with pytest.raises(CheckpointError, match="absolute_actions_processor False"):
        load_checkpoint(folder)


def test_relative_actions_can_be_said_where_no_processor_says_them(folder):
    assert load_checkpoint(folder).relative is None
    assert load_checkpoint(folder, relative="all").relative == Relative()
    assert load_checkpoint(folder, relative="except:gripper").relative == Relative(
        None, ("gripper",))
    with pytest.raises(CheckpointError, match="expected all, none, or except"):
        load_checkpoint(folder, relative="yes")


def test_aloha_is_taken_for_fourteen_joints_only(tmp_path, folder):
    arms = replace(TINY, state=14, action=14, max_state=16, max_action=16)
    made = write_checkpoint(tmp_path / "arms", arms, tokenizer=TOKENIZER)
    assert load_checkpoint(made).aloha == "none"
    assert load_checkpoint(made, aloha="openpi").aloha == "openpi"
    edit_json(made / "config.json", adapt_to_pi_aloha=True)
    assert load_checkpoint(made).aloha == "lerobot"
    with pytest.raises(CheckpointError, match="expected 14 of each"):
        load_checkpoint(folder, aloha="openpi")


def test_renamed_cameras_are_called_as_the_robot_calls_them(folder):
    path = folder / "policy_preprocessor.json"
    renames = {"observation.images.top": "observation.images.base_0_rgb"}
    path.write_text(path.read_text().replace('"rename_map": {}',
                                             f'"rename_map": {json.dumps(renames)}'))
    made = load_checkpoint(folder)
    assert [made.camera_names[key] for key in made.cameras] == ["top", "left_wrist_0_rgb"]


def test_shards_are_read_as_one_file_is(tmp_path):
    whole = write_checkpoint(tmp_path / "whole", tokenizer=TOKENIZER)
    shards = write_checkpoint(tmp_path / "shards", tokenizer=TOKENIZER, shard_bytes=20_000)
    assert len(list(shards.glob("model-*.safetensors"))) > 2
    same(load_checkpoint(shards).state, load_checkpoint(whole).state)


def test_one_stage_is_read_without_the_others(folder):
    made = load_checkpoint(folder, stages=("action_head",))
    assert {name.partition(".")[0] for name in made.state} == {"action_head"}


def test_a_lora_adapter_is_merged_or_refused_as_for_any_policy(folder, tmp_path):
    adapter = tmp_path / "adapter"
    shutil.copytree(folder, adapter)
    (adapter / "model.safetensors").unlink()
    (adapter / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "base_model_name_or_path": "base"}))
    with pytest.raises(CheckpointError, match="pass base=DIR"):
        load_checkpoint(adapter)
