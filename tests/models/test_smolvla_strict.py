# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What would change a number unseen, or is no number at all, is refused by its name."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")

from omni_ros.models.common.errors import CheckpointError  # noqa: E402
from omni_ros.models.smolvla.load import load_checkpoint  # noqa: E402

PRE, POST = "policy_preprocessor.json", "policy_postprocessor.json"
NAN = float("nan")


def edit(path, change):
    content = json.loads(path.read_text())
    content = change(content) or content
    path.write_text(json.dumps(content))


def refusal(folder, **options) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder, **options)
    return str(caught.value)


def add(step):
    return lambda content: content["steps"].append(step)


def set_config(name, **values):
    def change(content):
        for step in content["steps"]:
            if step["registry_name"] == name:
                step["config"].update(values)

    return change


# -- processor files -----------------------------------------------------------------------------


@pytest.mark.parametrize(("file", "step", "words"), [
    (PRE, {"registry_name": "relative_actions_processor", "config": {"enabled": True}},
     "relative_actions_processor): enabled is True: expected false"),
    (POST, {"registry_name": "absolute_actions_processor", "config": {"enabled": True}},
     "train with absolute actions"),
    (POST, {"class": "my.module.ScaleActions", "config": {"scale": 2}}, "'my.module.ScaleActions'"),
    (POST, {"class": "my.NormalizerProcessorStep"}, "'my.NormalizerProcessorStep'"),
    (PRE, {"registry_name": "delta_action_processor"}, "'delta_action_processor'"),
    (POST, {"registry_name": "normalizer_processor"}, "'normalizer_processor'"),
    (PRE, {"registry_name": "normalizer_processor", "config": {}}, "is there twice"),
    (POST, {"registry_name": "unnormalizer_processor", "config": {}}, "is there twice"),
    (PRE, {"registry_name": "device_processor", "config": {"float_dtype": "bfloat16"}},
     "float_dtype is 'bfloat16'"),
    (PRE, "a step", "is 'a step': expected an object"),
    (PRE, {"registry_name": "device_processor", "config": None}, "config is None"),
])
def test_a_step_that_is_not_done_here_is_refused_by_name(editable, file, step, words):
    edit(editable / file, add(step))
    message = refusal(editable)
    assert words in message and file in message


@pytest.mark.parametrize(("file", "step"), [
    (PRE, {"registry_name": "relative_actions_processor", "config": {"enabled": False}}),
    (POST, {"registry_name": "absolute_actions_processor", "config": {"enabled": False}}),
    (POST, {"registry_name": "device_processor", "config": {"device": "cpu"}}),
    (PRE, {"class": "lerobot.processor.batch_processor.AddBatchDimensionProcessorStep"}),
])
def test_a_step_that_changes_nothing_is_taken(editable, file, step):
    edit(editable / file, add(step))
    load_checkpoint(editable)


@pytest.mark.parametrize("steps", [None, {}, "x"])
def test_steps_that_are_no_list_are_refused(editable, steps):
    edit(editable / PRE, lambda content: content.update(steps=steps))
    assert f"{PRE}: steps is {steps!r}: expected a list" in refusal(editable)


@pytest.mark.parametrize(("name", "values", "words"), [
    ("normalizer_processor", {"normalize_observation_keys": ["observation.images.camera1"]},
     "without observation.state"),
    ("normalizer_processor", {"features": {"action": {"type": "ACTION"}}},
     "features has observation.state of type None: expected STATE"),
    ("normalizer_processor", {"features": {"observation.state": {"type": "ENV"}}}, "type 'ENV'"),
    ("normalizer_processor", {"norm_map": ["a"]}, "norm_map is ['a']"),
    ("normalizer_processor", {"eps": "a"}, "eps is 'a': expected a number"),
    ("normalizer_processor", {"eps": NAN}, "eps is nan"),
    ("rename_observations_processor", {"rename_map": ["a"]}, "rename_map is ['a']"),
    ("tokenizer_processor", {"max_length": "a"}, "max_length is 'a': expected a number"),
    ("tokenizer_processor", {"max_length": 12.5}, "expected a whole number"),
    ("tokenizer_processor", {"max_length": 10**9}, "max_length is 1000000000: expected 1 to 4096"),
])
def test_a_config_of_a_step_that_cannot_be_taken_is_refused(editable, name, values, words):
    edit(editable / PRE, set_config(name, **values))
    assert words in refusal(editable)


# -- statistics ----------------------------------------------------------------------------------


def test_old_statistics_that_contradict_the_processors_are_refused(editable):
    path = editable / "model.safetensors"
    tensors = safetensors_torch.load_file(path)
    name = "normalize_inputs.buffer_observation_state"
    tensors |= {f"{name}.mean": torch.full((4,), 99.0), f"{name}.std": torch.ones(4)}
    safetensors_torch.save_file(tensors, path)
    message = refusal(editable)
    assert "disagree about observation.state mean" in message and "[99, 99, 99, ...]" in message
    given = {"observation.state": {"mean": [0.0] * 4, "std": [1.0] * 4}}
    load_checkpoint(editable, statistics=given)


@pytest.mark.parametrize(("given", "words"), [
    ({"observations.state": {}, "actions": {}}, "statistics of actions, observations.state: exp"),
    ({"observations.state": {}, "action": {"mean": [0] * 3, "std": [1] * 3}},
     "statistics of observations.state, and none of observation.state"),
    ({}, "statistics of nothing"),
    ({"action": {"mean": ["1"] * 3, "std": ["1"] * 3}}, "no numbers"),
    ({"action": {"mean": [2e9] * 3, "std": [1] * 3}}, "mean[0] is 2e+09: expected at most 1e+09"),
])
def test_given_statistics_that_would_be_passed_over_are_refused(editable, tmp_path, given, words):
    assert words in refusal(editable, statistics=given)
    path = tmp_path / "stats.json"
    path.write_text(json.dumps(given))
    message = refusal(editable, statistics=path)
    assert words in message


def test_a_data_sets_other_statistics_are_passed_over(editable):
    given = {
        "action": {"mean": [0] * 3, "std": [1] * 3}, "timestamp": {"mean": [1]},
        "observation.images.top": {"mean": [[[0.5]]] * 3}, "episode_index": {"max": [4]},
    }
    load_checkpoint(editable, statistics=given)


def test_a_data_set_that_nothing_is_named_after_is_refused(editable):
    assert "dataset=aloha: " in refusal(editable, dataset="aloha")


# -- config --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("field", "value", "words"), [
    ("chunk_size", float("inf"), "chunk_size is inf: expected 1 to"),
    ("chunk_size", 10**30, "chunk_size is 1000000000"), ("chunk_size", 0, "chunk_size is 0"),
    ("num_steps", 10**9, "num_steps is 1000000000: expected 1 to 1000"),
    ("n_action_steps", -1, "n_action_steps is -1: expected 1 to"),
    ("n_action_steps", 10**6, "n_action_steps is 1000000: expected 1 to 6"),
    ("tokenizer_max_length", "5", "tokenizer_max_length is '5'"),
    ("tokenizer_max_length", NAN, "tokenizer_max_length is nan"),
    ("tokenizer_max_length", None, "tokenizer_max_length is None"),
    ("empty_cameras", -1, "empty_cameras is -1: expected 0 to 16"),
    ("max_period", float("inf"), "max_period is inf"),
    ("expert_width_multiplier", float("inf"), "expert_width_multiplier is inf"),
    ("self_attn_every_n_layers", 1.5, "expected a whole number"),
    ("resize_imgs_with_padding", [0, 0], "expected [width, height]"),
    ("resize_imgs_with_padding", [32.7, 32.7], "expected [width, height]"),
    ("resize_imgs_with_padding", [None, None], "expected [width, height]"),
    ("attention_mode", "crossfoo", "attention_mode is 'crossfoo'"),
    ("input_features", {"observation.state": None}, "observation.state is None"),
    ("input_features", {"observation.images.a": {"type": "VISUAL", "shape": 7}}, "has shape 7"),
    ("input_features", {"observation.images.a": {"type": "VISUAL", "shape": [3, 0, 0]}},
     "has shape [3, 0, 0]"),
])
def test_a_value_that_cannot_be_is_refused_by_its_fields_name(editable, field, value, words):
    edit(editable / "config.json", lambda content: content.update({field: value}))
    assert words in refusal(editable)


@pytest.mark.parametrize(("section", "field", "value"), [
    ("text_config", "num_attention_heads", 0), ("text_config", "head_dim", float("inf")),
    ("text_config", "rms_norm_eps", NAN), ("text_config", "rms_norm_eps", 0),
    ("vision_config", "patch_size", 0), ("vision_config", "num_attention_heads", -1),
    ("vision_config", "layer_norm_eps", 7), ("vision_config", "image_size", float("inf")),
])
def test_a_backbones_value_that_cannot_be_is_refused(editable, section, field, value):
    def change(content):
        content[section][field] = value

    edit(editable.parent / "vlm" / "config.json", change)
    assert f"{section}: {field} is {value!r}: expected" in refusal(editable)


def test_a_file_nested_deeper_than_any_is_refused(editable):
    (editable / "config.json").write_text("[" * 100_000)
    assert "config.json: expected a JSON file" in refusal(editable)


def test_an_index_of_shards_that_is_none_is_refused(editable):
    (editable / "model.safetensors").unlink()
    (editable / "model.safetensors.index.json").write_text('{"weight_map": ["a.safetensors"]}')
    assert "weight_map is ['a.safetensors']: expected an object" in refusal(editable)
