# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Odd checkpoints of Qwen3-TTS are refused with what is odd; those as released are taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file, save_file  # noqa: E402

from omni_ros.models.common.errors import CheckpointError  # noqa: E402
from omni_ros.models.qwen3_tts import keys, load  # noqa: E402
from omni_ros.models.qwen3_tts.random_checkpoint import KINDS, write_checkpoint  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path / "made", size="tiny", kind="custom_voice")
    return tmp_path / "made"


def change(path: Path, edit) -> None:
    values = json.loads(path.read_text())
    edit(values)
    path.write_text(json.dumps(values))


def change_tensors(path: Path, edit) -> None:
    tensors = load_file(path)
    edit(tensors)
    save_file(tensors, path)


def refusal(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load.load_checkpoint(folder)
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", ["tiny", "tiny_equal"])
def test_both_layouts_and_kinds_are_taken_with_their_ids(tmp_path, size, kind):
    write_checkpoint(tmp_path / "made", size=size, kind=kind)
    checkpoint = load.load_checkpoint(tmp_path / "made")
    assert checkpoint.config.kind == kind
    assert bool(checkpoint.config.speakers) == (kind == "custom_voice")
    assert checkpoint.config.codec_ids["eos"] == 2150
    predictor = load.build_predictor(checkpoint)
    assert (predictor.project is None) == (size == "tiny_equal")


def test_shards_are_read_as_one(folder):
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    where = {}
    for shard, part in enumerate((names[::2], names[1::2])):
        file = f"model-{shard}.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        where |= dict.fromkeys(part, file)
    whole = load.build_talker(load.load_checkpoint(folder))
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    sharded = load.build_talker(load.load_checkpoint(folder))
    for ours, theirs in zip(whole.parameters(), sharded.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_speaker_encoder_and_an_encoder_of_sound_are_left_aside(folder):
    change_tensors(folder / "model.safetensors",
                   lambda t: t.update({"speaker_encoder.fc.bias": torch.zeros(2)}))
    change_tensors(folder / "speech_tokenizer" / "model.safetensors",
                   lambda t: t.update({"encoder.layers.0.conv.bias": torch.zeros(2)}))
    load.load_checkpoint(folder)


@pytest.mark.parametrize(("file", "key"), [
    ("model.safetensors", "talker.model.layers.1.self_attn.k_norm.weight"),
    ("model.safetensors", "talker.code_predictor.lm_head.14.weight"),
    ("model.safetensors", "talker.code_predictor.small_to_mtp_projection.bias"),
    ("speech_tokenizer/model.safetensors", "decoder.decoder.2.block.3.act2.beta"),
    ("speech_tokenizer/model.safetensors",
     "decoder.quantizer.rvq_rest.vq.layers.14._codebook.cluster_usage"),
])
def test_a_tensor_that_is_missing_is_named(folder, file, key):
    change_tensors(folder / file, lambda t: t.pop(key))
    assert key in refusal(folder)


@pytest.mark.parametrize("file", ["model.safetensors", "speech_tokenizer/model.safetensors"])
def test_a_tensor_of_no_known_use_is_named(folder, file):
    change_tensors(folder / file, lambda t: t.update({"optimizer.step": torch.zeros(1)}))
    assert "optimizer.step" in refusal(folder)


def test_a_tensor_of_another_shape_is_named_with_both_shapes(folder):
    change_tensors(folder / "model.safetensors",
                   lambda t: t.update({"talker.codec_head.weight": torch.zeros(3000, 64)}))
    text = refusal(folder)
    assert "talker.codec_head.weight" in text and "[3000, 64]" in text and "[3072, 64]" in text


def test_weights_that_are_not_finite_are_named_when_they_are_read(folder):
    key = "talker.model.layers.1.mlp.up_proj.weight"
    change_tensors(folder / "model.safetensors", lambda t: t[key].view(-1)[5].fill_(torch.nan))
    checkpoint = load.load_checkpoint(folder)
    with pytest.raises(CheckpointError, match=key):
        load.build_talker(checkpoint)


@pytest.mark.parametrize(("edit", "words"), [
    (lambda c: c.update(model_type="qwen3"), ("model_type", "qwen3_tts")),
    (lambda c: c.update(tts_model_type="choir"), ("tts_model_type", "custom_voice")),
    (lambda c: c.update(tokenizer_type="qwen3_tts_tokenizer_25hz"), ("25hz", "12hz")),
    (lambda c: c.pop("tts_pad_token_id"), ("tts_pad_token_id", "add it")),
    (lambda c: c["talker_config"].update(codec_eos_token_id=4198), ("codec_eos_token_id", "3071")),
    (lambda c: c["talker_config"].update(num_code_groups=32), ("num_code_groups", "32")),
    (lambda c: c["talker_config"].update(use_sliding_window=True), ("use_sliding_window",)),
    (lambda c: c["talker_config"].update(hidden_act="gelu"), ("hidden_act", "silu")),
    (lambda c: c["talker_config"].update(num_key_value_heads=3), ("num_key_value_heads", "3")),
    (lambda c: c["talker_config"]["rope_scaling"].update(mrope_section=[1, 1, 1]),
     ("mrope_section", "8")),
    (lambda c: c["talker_config"]["rope_scaling"].update(mrope_section="8"), ("mrope_section",)),
    (lambda c: c["talker_config"]["rope_scaling"].update(rope_type="yarn"), ("yarn",)),
    (lambda c: c["talker_config"].update(codec_language_id={}), ("codec_language_id",)),
    (lambda c: c["talker_config"].update(spk_id={"robo": 9999}), ("spk_id", "3072")),
    (lambda c: c["talker_config"].update(spk_id={}), ("spk_id is empty", "base")),
    (lambda c: c["talker_config"].update(spk_is_dialect={"robo": "klingon"}), ("klingon",)),
    (lambda c: c["talker_config"]["code_predictor_config"].update(vocab_size=4096),
     ("vocab_size", "4096")),
    (lambda c: c["talker_config"]["code_predictor_config"].update(num_hidden_layers=3),
     ("layers.2",)),
    (lambda c: c["talker_config"].update(num_hidden_layers=1), ("layers.1", "no known use")),
])
def test_a_config_that_does_not_fit_is_refused_by_the_field(folder, edit, words):
    change(folder / "config.json", edit)
    text = refusal(folder)
    for word in words:
        assert word in text


@pytest.mark.parametrize(("edit", "words"), [
    (lambda c: c.update(decode_upsample_rate=1920), ("decode_upsample_rate", "1920", "24")),
    (lambda c: c["decoder_config"].update(num_quantizers=8), ("num_quantizers", "16")),
    (lambda c: c["decoder_config"].update(sliding_window=1), ("sliding_window",)),
    (lambda c: c["decoder_config"].pop("rope_theta"), ("rope_theta",)),
    (lambda c: c["decoder_config"].update(upsample_rates=[4, 0]), ("upsample_rates",)),
])
def test_a_speech_tokenizer_that_does_not_fit_is_refused_by_the_field(folder, edit, words):
    change(folder / "speech_tokenizer" / "config.json", edit)
    text = refusal(folder)
    for word in words:
        assert word in text


def test_no_folder_and_no_files_are_said_to_be_so(tmp_path):
    assert "no folder" in refusal(tmp_path / "nowhere")
    assert "config.json" in refusal(tmp_path)


def test_every_tensor_of_the_reference_checkpoint_is_known():
    oracle = Path(__file__).resolve().parents[1] / "data" / "oracles" / "qwen3_tts_given"
    checkpoint = load.load_checkpoint(oracle / "checkpoint")
    used = {part.key for part in keys.talker_file(checkpoint.config)}
    left = {name for name in checkpoint.speech.names if name not in used}
    assert left and all(name.startswith("speaker_encoder.") for name in left)
