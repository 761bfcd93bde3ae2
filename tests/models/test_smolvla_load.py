# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Loading is strict: what is wrong with a checkpoint is named, with what to do."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")

from omni_ros.models.common.errors import CheckpointError  # noqa: E402
from omni_ros.models.smolvla.keys import EXPERT, TEXT, TOKENS, VISION, VLM  # noqa: E402
from omni_ros.models.smolvla.load import build, load_checkpoint  # noqa: E402
from omni_ros.models.smolvla.random_checkpoint import TINY, write_checkpoint  # noqa: E402


def edit_weights(folder, change):
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in safetensors_torch.load_file(path).items()}
    tensors = change(tensors) or tensors
    safetensors_torch.save_file(tensors, path)


def edit_json(path, **values):
    content = json.loads(path.read_text())
    content.update(values)
    path.write_text(json.dumps(content))


def refusal(folder, **options) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder, **options)
    return str(caught.value)


# -- tensors -------------------------------------------------------------------------------------


def test_every_tensor_is_used_or_listed_as_unused(lerobots):
    checkpoint = load_checkpoint(lerobots)
    in_file = set(safetensors_torch.load_file(lerobots / "model.safetensors"))
    assert set(checkpoint.unused) < in_file
    assert f"{VLM}.lm_head.weight" in checkpoint.unused
    # One tensor becomes two parameters (actions and time apart); the token table becomes none.
    assert len(checkpoint.state) == len(in_file) - len(checkpoint.unused) - 1 + 1


def test_missing_tensors_are_named(editable):
    gone = f"{EXPERT}.layers.0.mlp.up_proj.weight"
    edit_weights(editable, lambda tensors: tensors.pop(gone) is None)
    assert f"1 tensors are missing: {gone}" in refusal(editable)


def test_missing_token_tables_are_named(editable):
    edit_weights(editable, lambda tensors: tensors.pop(TOKENS) is None)
    assert f"{TOKENS} is missing" in refusal(editable)


def test_unknown_tensors_are_named(editable):
    edit_weights(editable, lambda tensors: tensors.update({"model.extra.weight": torch.ones(2)}))
    assert "1 tensors are not known: model.extra.weight" in refusal(editable)


def test_misshapen_tensors_are_named_with_both_shapes(editable):
    edit_weights(
        editable, lambda tensors: tensors.update({"model.state_proj.weight": torch.ones(24, 9)})
    )
    assert "model.state_proj.weight is (24, 9), expected (24, 8)" in refusal(editable)


def test_weights_that_are_not_finite_are_refused(editable):
    def spoil(tensors):
        tensors["model.state_proj.bias"][3] = float("nan")

    edit_weights(editable, spoil)
    assert "model.state_proj.bias holds values that are not finite" in refusal(editable)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_token_table_that_is_not_finite_is_refused(editable, value):
    def spoil(tensors):
        tensors[TOKENS][3, 1] = value

    edit_weights(editable, spoil)
    assert f"{TOKENS} holds values that are not finite" in refusal(editable)


def test_a_token_table_in_a_dtype_that_none_is_kept_in_becomes_float32(editable):
    plain = load_checkpoint(editable).token_table
    edit_weights(editable, lambda tensors: tensors.update({TOKENS: tensors[TOKENS].double()}))
    assert torch.equal(load_checkpoint(editable).token_table, plain)
    edit_weights(editable, lambda tensors: tensors.update({TOKENS: tensors[TOKENS].to(torch.int8)}))
    assert "torch.int8" in refusal(editable)


def test_weights_that_are_not_floating_point_are_refused(editable):
    def spoil(tensors):
        tensors["model.state_proj.bias"] = tensors["model.state_proj.bias"].to(torch.int8)

    edit_weights(editable, spoil)
    assert "torch.int8" in refusal(editable)


def test_what_torch_compile_adds_to_names_is_dropped(editable):
    plain = load_checkpoint(editable)
    edit_weights(editable, lambda tensors: {
        name.replace("model.", "model._orig_mod.", 1): t for name, t in tensors.items()
    })
    compiled = load_checkpoint(editable)
    assert compiled.state.keys() == plain.state.keys()
    assert all(torch.equal(compiled.state[name], plain.state[name]) for name in plain.state)


def test_a_tensor_that_is_there_compiled_and_plain_is_refused(editable):
    edit_weights(editable, lambda tensors: tensors.update({
        "model._orig_mod.state_proj.bias": tensors["model.state_proj.bias"].clone()
    }))
    assert "model.state_proj.bias is there twice" in refusal(editable)


def test_names_without_the_leading_model_are_known(editable):
    edit_weights(editable, lambda tensors: {
        name.removeprefix("model."): tensor for name, tensor in tensors.items()
    })
    assert load_checkpoint(editable).config == TINY


def test_buffers_that_older_releases_saved_are_unused(editable):
    name = f"{TEXT}.layers.0.self_attn.rotary_emb.inv_freq"
    edit_weights(editable, lambda tensors: tensors.update({name: torch.ones(4)}))
    assert name in load_checkpoint(editable).unused


def test_a_truncated_file_is_refused_by_name(editable):
    path = editable / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    assert "model.safetensors is not a readable safetensors file" in refusal(editable)


def test_a_folder_without_weights_is_refused(editable):
    (editable / "model.safetensors").unlink()
    assert "neither model.safetensors nor model.safetensors.index.json" in refusal(editable)


@pytest.mark.parametrize(("dtype", "kind", "error"), [
    ("f32", torch.float32, 0.0), ("bf16", torch.bfloat16, 2e-2), ("f16", torch.float16, 2e-3),
])
def test_each_dtype_on_disk_loads_as_float32(tmp_path, dtype, kind, error):
    reference = load_checkpoint(write_checkpoint(tmp_path / "reference"))
    checkpoint = load_checkpoint(write_checkpoint(tmp_path / dtype, dtype=dtype))
    assert checkpoint.token_table.dtype == kind
    for name, tensor in checkpoint.state.items():
        assert tensor.dtype == torch.float32
        assert torch.allclose(tensor, reference.state[name], rtol=error, atol=error)


def test_shards_load_as_one_file_does(tmp_path):
    whole = load_checkpoint(write_checkpoint(tmp_path / "whole"))
    sharded = load_checkpoint(write_checkpoint(tmp_path / "shards", shard_bytes=50_000))
    assert len(sharded.files) > len(whole.files)
    assert all(torch.equal(whole.state[name], sharded.state[name]) for name in whole.state)


def test_a_shard_outside_the_folder_is_refused(tmp_path):
    folder = write_checkpoint(tmp_path, shard_bytes=50_000)
    edit_json(folder / "model.safetensors.index.json", weight_map={"a": "../x.safetensors"})
    assert "'../x.safetensors', which is not in" in refusal(folder)


# -- LoRA ----------------------------------------------------------------------------------------


def write_adapter(folder, target=f"{EXPERT}.layers.0.self_attn.q_proj", **config):
    folder.mkdir(exist_ok=True)
    settings = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "base_model_name_or_path": "org/base"}
    (folder / "adapter_config.json").write_text(json.dumps({**settings, **config}))
    generator = torch.Generator().manual_seed(1)
    down, up = torch.randn(2, 18, generator=generator), torch.randn(24, 2, generator=generator)
    safetensors_torch.save_file({
        f"base_model.model.{target}.lora_A.weight": down,
        f"base_model.model.{target}.lora_B.weight": up,
        "base_model.model.model.state_proj.bias": torch.full((24,), 0.5),
    }, folder / "adapter_model.safetensors")
    return up @ down


def adapter_of(editable, **options):
    """Make an adapter's folder; return it and what it adds."""
    folder = editable.parent / "adapter"
    shutil.copytree(editable, folder, ignore=shutil.ignore_patterns("model.safetensors"))
    return folder, write_adapter(folder, **options)


def test_a_lora_adapter_is_merged_into_its_base(editable):
    name = "action_head.layers.0.q.weight"
    before = load_checkpoint(editable).state[name].clone()
    folder, delta = adapter_of(editable)
    merged = load_checkpoint(folder, base=editable).state
    assert torch.allclose(merged[name], before + 2 * delta, atol=1e-5)
    assert torch.equal(merged["fusion_backbone.state_proj.bias"], torch.full((24,), 0.5))


def test_an_adapter_alone_asks_for_its_base(editable, tmp_path):
    adapter = tmp_path / "adapter"
    write_adapter(adapter)
    (adapter / "config.json").write_text((editable / "config.json").read_text())
    assert "pass base=DIR (it was trained on 'org/base')" in refusal(adapter)


def test_an_adapter_of_another_kind_is_refused(editable):
    folder, _ = adapter_of(editable, use_dora=True)
    assert "use_dora True" in refusal(folder, base=editable)


def test_an_adapter_beside_a_whole_model_asks_whether_it_was_merged(editable):
    write_adapter(editable)
    message = refusal(editable)
    assert "remove adapter_config.json" in message and "base=DIR" in message


def test_a_base_without_an_adapter_is_refused(editable):
    assert "base=DIR is for one" in refusal(editable, base=editable)


def test_a_checkpoint_that_says_it_has_an_adapter_and_has_none_is_refused(editable):
    edit_json(editable / "config.json", use_peft=True)
    assert "use_peft is true" in refusal(editable)


@pytest.mark.parametrize(("config", "words"), [
    ({"r": "2"}, "r is '2' and lora_alpha 4"), ({"r": -1}, "r is -1"), ({"r": 2.0}, "r is 2.0"),
    ({"lora_alpha": [4]}, "lora_alpha [4]"), ({"lora_alpha": float("nan")}, "lora_alpha nan"),
    ({"r": 64}, "r is 64, lora_A of"),
])
def test_an_adapter_whose_rank_or_scale_cannot_be_is_refused(editable, config, words):
    folder, _ = adapter_of(editable, **config)
    assert words in refusal(folder, base=editable)


def test_an_adapter_that_is_not_finite_is_refused(editable):
    folder, _ = adapter_of(editable)
    path = folder / "adapter_model.safetensors"
    tensors = safetensors_torch.load_file(path)
    start = f"base_model.model.{TOKENS.removesuffix('weight')}"
    tensors[f"{start}lora_A.weight"] = torch.full((2, 24), float("nan"))
    tensors[f"{start}lora_B.weight"] = torch.ones(512, 2)
    safetensors_torch.save_file(tensors, path)
    assert f"{TOKENS} holds values that are not finite" in refusal(folder, base=editable)


def test_an_adapter_without_tensors_is_refused(editable):
    folder, _ = adapter_of(editable)
    safetensors_torch.save_file({}, folder / "adapter_model.safetensors")
    assert "holds no tensors" in refusal(folder, base=editable)


def test_an_adapter_for_a_layer_that_is_not_there_is_refused(editable):
    folder, _ = adapter_of(editable, target="model.other")
    assert "model.other.weight, which the base checkpoint" in refusal(folder, base=editable)


def test_adapters_left_between_the_weights_are_refused(editable):
    edit_weights(editable, lambda tensors: tensors.update({
        "model.state_proj.lora_A.default.weight": torch.ones(2, 8)
    }))
    assert "unmerged adapter weights" in refusal(editable)


# -- config and backbone -------------------------------------------------------------------------


def test_fields_of_other_releases_are_ignored(editable):
    edit_json(editable / "config.json", pretrained_revision="abc", a_new_field=[1, 2])
    assert load_checkpoint(editable).config == TINY


def test_fields_that_older_releases_lack_take_lerobots_defaults(editable):
    content = json.loads((editable / "config.json").read_text())
    for name in ("add_image_special_tokens", "num_expert_layers", "prefix_length", "min_period"):
        del content[name]
    (editable / "config.json").write_text(json.dumps(content))
    assert load_checkpoint(editable).config == TINY


@pytest.mark.parametrize(("field", "value", "words"), [
    ("type", "pi0", "type is 'pi0': expected 'smolvla'"),
    ("n_obs_steps", 2, "n_obs_steps is 2: expected 1"),
    ("num_expert_layers", 1, "num_expert_layers is 1 and num_vlm_layers 2: expected the same"),
    ("num_vlm_layers", 3, "says 3, the shape of the expert's last says 2"),
    ("adapt_to_pi_aloha", True, "adapt_to_pi_aloha is true: expected false"),
    ("use_delta_joint_actions_aloha", True, "use_delta_joint_actions_aloha is true"),
    ("resize_imgs_with_padding", None, "expected [width, height]"),
    ("resize_imgs_with_padding", [32, 64], "not square"),
    ("resize_imgs_with_padding", [30, 30], "do not divide into patches of 8"),
    ("expert_width_multiplier", 0.5, "says 12, the shape of"),
    ("chunk_size", "many", "chunk_size is 'many': expected a number"),
    ("max_state_dim", 3, "a state of 4 values in max_state_dim 3"),
])
def test_a_config_that_does_not_fit_is_refused_with_both_sides(editable, field, value, words):
    edit_json(editable / "config.json", **{field: value})
    assert words in refusal(editable)


def test_a_backbone_that_is_not_the_checkpoints_is_refused_with_both_numbers(editable):
    path = editable.parent / "vlm" / "config.json"
    sections = json.loads(path.read_text())
    sections["vision_config"]["patch_size"] = 4
    path.write_text(json.dumps(sections))
    message = refusal(editable)
    assert "patch size" in message and "says 4" in message and "says 8" in message


def test_a_backbone_with_other_heads_is_refused(editable):
    path = editable.parent / "vlm" / "config.json"
    sections = json.loads(path.read_text())
    sections["text_config"]["num_attention_heads"] = 6
    path.write_text(json.dumps(sections))
    assert "heads x head_dim" in refusal(editable)


def test_a_backbone_nobody_has_is_asked_for(editable):
    edit_json(editable / "config.json", vlm_model_name="org/other")
    message = refusal(editable)
    assert "'org/other'" in message and "backbone=DIR" in message
    assert load_checkpoint(editable, backbone=editable.parent / "vlm").config == TINY


def test_the_usual_backbone_is_known_by_name_and_still_checked(editable):
    edit_json(editable / "config.json", vlm_model_name="HuggingFaceTB/SmolVLM2-500M-Video-Instruct")
    assert "HuggingFaceTB/SmolVLM2-500M-Video-Instruct: vision_config says 768" in refusal(
        editable
    )


def test_image_marks_need_the_tokenizer(editable):
    edit_json(editable / "config.json", add_image_special_tokens=True)
    table = load_checkpoint(editable).token_table
    marks = load_checkpoint(editable).state["fusion_backbone.start_marks"]
    assert torch.equal(marks, torch.stack([table[3], table[6]]))
    (editable.parent / "vlm" / "tokenizer.json").unlink()
    assert "needs the tokenizer" in refusal(editable)


def test_shifted_vision_positions_are_an_explicit_choice(editable):
    new, old = (
        build(load_checkpoint(editable, compat=compat)).vision_encoder.position_table
        for compat in ("new", "transformers-4.55")
    )
    assert torch.equal(old[0], new[0]) and torch.equal(old[2], new[1])
    assert "compat is 'old'" in refusal(editable, compat="old")


def test_cameras_keep_the_configs_order_without_announced_empty_ones(oracle):
    checkpoint = oracle.checkpoint
    order = [key for key in oracle.arch["camera_order"] if "empty_camera" not in key]
    assert list(checkpoint.cameras) == order


def test_prompt_rules_come_from_the_preprocessor(lerobots):
    path = lerobots / "policy_preprocessor.json"
    content = json.loads(path.read_text())
    content["steps"] = [s for s in content["steps"] if "new_line" not in s["registry_name"]]
    for step in content["steps"]:
        if step["registry_name"] == "tokenizer_processor":
            step["config"].update(max_length=20, padding="longest")
        if step["registry_name"] == "rename_observations_processor":
            step["config"]["rename_map"] = {"observation.images.front": "observation.images.top"}
    path.write_text(json.dumps(content))
    checkpoint = load_checkpoint(lerobots)
    tokenizer = checkpoint.tokenizer
    assert (tokenizer.max_length, tokenizer.padding, tokenizer.newline) == (20, "longest", False)
    assert checkpoint.config.language == 20
    assert checkpoint.rename_map == {"observation.images.front": "observation.images.top"}


# -- statistics ----------------------------------------------------------------------------------


def statistics_files(folder):
    return sorted(folder.glob("policy_*processor.safetensors"))


def edit_statistics(folder, change):
    for path in statistics_files(folder):
        stored = safetensors_torch.load_file(path)
        tensors = {name: tensor.clone() for name, tensor in stored.items()}
        safetensors_torch.save_file(change(tensors) or tensors, path)


def test_statistics_are_those_of_the_processors(lerobots):
    checkpoint = load_checkpoint(lerobots)
    stored = safetensors_torch.load_file(statistics_files(lerobots)[0])
    assert checkpoint.state_statistics.mode == "MEAN_STD"
    for name in ("mean", "std", "q01"):
        expected = stored[f"observation.state.{name}"].numpy()
        assert np.array_equal(checkpoint.state_statistics.values[name], expected)
    assert np.array_equal(checkpoint.action_statistics.values["std"], stored["action.std"].numpy())


def test_statistics_follow_the_state_file_whatever_its_number(editable):
    path = next(editable.glob("policy_preprocessor_step_*"))
    path.rename(editable / "policy_preprocessor_step_9_normalizer_processor.safetensors")
    assert "step_3_normalizer_processor.safetensors does not exist" in refusal(editable)
    steps = json.loads((editable / "policy_preprocessor.json").read_text())["steps"]
    steps[-1]["state_file"] = "policy_preprocessor_step_9_normalizer_processor.safetensors"
    edit_json(editable / "policy_preprocessor.json", steps=steps)
    assert load_checkpoint(editable).state_statistics.source.endswith(
        "step_9_normalizer_processor.safetensors"
    )


def test_counts_among_the_statistics_are_whole_numbers_and_no_reason_to_refuse(editable):
    edit_statistics(editable, lambda tensors: tensors.update({"action.count": torch.tensor([99])}))
    assert load_checkpoint(editable).action_statistics.values["count"].tolist() == [99]


def test_steps_named_by_their_class_are_known(editable):
    path = editable / "policy_preprocessor.json"
    steps = json.loads(path.read_text())["steps"]
    del steps[-1]["registry_name"]
    steps[-1]["class"] = "lerobot.processor.normalize_processor.NormalizerProcessorStep"
    edit_json(path, steps=steps)
    assert load_checkpoint(editable).state_statistics.mode == "MEAN_STD"


def test_a_mode_that_is_not_said_is_refused(editable):
    path = editable / "policy_preprocessor.json"
    path.write_text(path.read_text().replace('"STATE": "MEAN_STD"', '"ENV": "MEAN_STD"'))
    assert "expected one for STATE, too" in refusal(editable)


def test_statistics_that_match_no_feature_are_refused_as_inert(editable):
    edit_statistics(editable, lambda tensors: {
        "so100.buffer.action.mean": tensors["action.mean"],
        "so100.buffer.action.std": tensors["action.std"],
    })
    message = refusal(editable)
    assert "no mean and std for observation.state" in message
    assert "so100.buffer.action" in message and "match no feature" in message
    given = {"observation.state": {"mean": [0.0] * 4, "std": [1.0] * 4}}
    checkpoint = load_checkpoint(editable, dataset="so100", statistics=given)
    assert checkpoint.action_statistics.values["std"].shape == (3,)


def test_missing_statistics_are_refused_with_what_to_pass(editable):
    edit_statistics(editable, lambda tensors: {
        name: tensor for name, tensor in tensors.items() if not name.startswith("action")
    })
    message = refusal(editable)
    assert "no mean and std for action" in message and "statistics=FILE" in message


@pytest.mark.parametrize(("value", "words"), [
    (float("inf"), "action std[1] is inf"),
    (float("nan"), "action std[1] is nan"),
    (0.0, "action std at index 1 is 0"),
])
def test_statistics_that_were_never_set_or_never_varied_are_refused(editable, value, words):
    def spoil(tensors):
        tensors["action.std"][1] = value

    edit_statistics(editable, spoil)
    assert words in refusal(editable)


def test_statistics_of_another_width_are_refused_with_both_numbers(editable):
    edit_statistics(editable, lambda tensors: tensors.update({"action.mean": torch.ones(5)}))
    assert "action mean has 5 values: config.json says 3" in refusal(editable)


def test_given_statistics_replace_the_checkpoints(editable, tmp_path):
    path = tmp_path / "stats.json"
    path.write_text(json.dumps({"action": {"mean": [1, 2, 3], "std": [4, 5, 6]}}))
    checkpoint = load_checkpoint(editable, statistics=path)
    assert checkpoint.action_statistics.values["std"].tolist() == [4, 5, 6]
    path.write_text("[1]")
    assert "expected JSON like" in refusal(editable, statistics=path)


def test_values_meant_unnormalised_are_an_explicit_choice(editable):
    edit_statistics(editable, lambda tensors: {"nothing.mean": torch.ones(1)})
    checkpoint = load_checkpoint(editable, statistics="identity")
    assert checkpoint.state_statistics.mode == checkpoint.action_statistics.mode == "IDENTITY"


def test_other_modes_need_their_own_statistics(lerobots):
    for name in ("policy_preprocessor.json", "policy_postprocessor.json"):
        path = lerobots / name
        path.write_text(path.read_text().replace('"MEAN_STD"', '"QUANTILES"'))
    checkpoint = load_checkpoint(lerobots)
    assert checkpoint.action_statistics.mode == "QUANTILES"
    assert {"q01", "q99"} <= set(checkpoint.action_statistics.values)


def test_normalised_images_are_refused(editable):
    path = editable / "policy_preprocessor.json"
    path.write_text(path.read_text().replace('"VISUAL": "IDENTITY"', '"VISUAL": "MEAN_STD"'))
    assert "images are normalised by MEAN_STD" in refusal(editable)


def to_old_layout(folder, dataset=""):
    """What LeRobot up to 0.3.3 saved: no processor files, statistics among the weights."""
    stored = safetensors_torch.load_file(statistics_files(folder)[0])
    for path in folder.glob("policy_*"):
        path.unlink()
    old = {}
    for name, tensor in stored.items():
        feature, _, statistic = name.rpartition(".")
        sides = (
            ["normalize_inputs"] if feature != "action"
            else ["normalize_targets", "unnormalize_outputs"]
        )
        for side in sides:
            old[f"{side}.{dataset}buffer_{feature.replace('.', '_')}.{statistic}"] = tensor.clone()
    edit_weights(folder, lambda tensors: tensors.update(old))
    return stored


@pytest.mark.parametrize("dataset", ["", "so100_", "so100-red_", "so100."])
def test_statistics_among_the_weights_of_old_releases_are_found(editable, dataset):
    stored = to_old_layout(editable, dataset)
    checkpoint = load_checkpoint(editable)
    expected = stored["observation.state.mean"].numpy()
    assert np.array_equal(checkpoint.state_statistics.values["mean"], expected)
    assert checkpoint.tokenizer.newline


def test_statistics_of_several_data_sets_ask_which_is_meant(editable):
    stored = to_old_layout(editable, "so100_")
    edit_weights(editable, lambda tensors: tensors.update({
        "normalize_inputs.so100-red_buffer_observation_state.mean": torch.ones(4),
        "normalize_inputs.so100-red_buffer_observation_state.std": torch.ones(4),
    }))
    assert "several data sets (so100, so100-red)" in refusal(editable)
    checkpoint = load_checkpoint(editable, dataset="so100")
    expected = stored["observation.state.mean"].numpy()
    assert np.array_equal(checkpoint.state_statistics.values["mean"], expected)
    assert "no statistics of the data set 'aloha'" in refusal(editable, dataset="aloha")


def test_old_infinite_statistics_are_refused_as_never_set(editable):
    to_old_layout(editable)
    edit_weights(editable, lambda tensors: tensors.update({
        "unnormalize_outputs.buffer_action.mean": torch.full((3,), float("inf"))
    }))
    assert "action mean[0] is inf (3 of 3 values are not finite: they were never set)" in (
        refusal(editable)
    )


def test_a_vision_tower_with_a_hole_is_named(editable):
    gone = f"{VISION}.encoder.layers.0.layer_norm1.bias"
    edit_weights(editable, lambda tensors: tensors.pop(gone) is None)
    assert gone in refusal(editable)
