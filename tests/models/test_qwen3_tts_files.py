# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What an export of a Qwen3-TTS writes beside programs: the tokenizer, tables, the GGUF talker."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from omni_ros.models.common.errors import CheckpointError  # noqa: E402
from omni_ros.models.export import gguf_talker  # noqa: E402
from omni_ros.models.qwen3_tts import load, tokenizer  # noqa: E402
from omni_ros.models.qwen3_tts.random_checkpoint import write_checkpoint  # noqa: E402

ORACLE = Path(__file__).resolve().parents[1] / "data" / "oracles" / "qwen3_tts_given"
KINDS = {"f32": 1e-5, "f16": 5e-3, "q8_0": 0.2, "q4_0": 2.0}


@pytest.fixture(scope="module")
def checkpoint():
    return load.load_checkpoint(ORACLE / "checkpoint")


def write_released_tokenizer(folder: Path) -> None:
    """vocab.json, merges.txt and tokenizer_config.json as a checkpoint is released with."""
    letters = tokenizer.bytes_to_letters()
    vocabulary = {letter: index for index, letter in enumerate(letters)}
    merges = [("h", "i"), ("Ġ", "hi")]
    for pair in merges:
        vocabulary["".join(pair)] = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
    (folder / "merges.txt").write_text("".join(f"{a} {b}\n" for a, b in merges))
    added = {str(len(vocabulary) + i): {"content": token, "special": True}
             for i, token in enumerate(("<|im_start|>", "<|im_end|>"))}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))


def test_a_released_tokenizer_becomes_one_file_that_splits_words_as_qwens(tmp_path):
    write_released_tokenizer(tmp_path)
    made = tokenizers.Tokenizer.from_str(tokenizer.tokenizer_text(tmp_path))
    ids = made.encode("<|im_start|>hi hi 42é").ids
    assert ids[0] == 258 and made.decode(ids, skip_special_tokens=False) == "<|im_start|>hi hi 42é"
    assert made.encode("hi hi").tokens == ["hi", "Ġhi"]
    # Digits one by one, whatever merges there are.
    assert made.encode("42").tokens == ["4", "2"]


def test_ids_of_the_tokenizer_and_of_the_config_have_to_agree(tmp_path):
    write_released_tokenizer(tmp_path)
    text = tokenizer.tokenizer_text(tmp_path)
    ids = {"im_start": 258, "im_end": 300, "assistant": 5}
    with pytest.raises(CheckpointError, match=r"<\|im_end\|> is 259 .* 300"):
        tokenizer.check_marks(text, ids, 400, tmp_path)


def test_a_missing_tokenizer_file_is_named(tmp_path):
    write_released_tokenizer(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(CheckpointError, match=r"merges\.txt"):
        tokenizer.tokenizer_text(tmp_path)


def test_the_made_up_tokenizer_gives_the_references_ids(checkpoint):
    made = tokenizers.Tokenizer.from_file(str(ORACLE / "checkpoint" / "tokenizer.json"))
    for path in ORACLE.glob("case*.npz"):
        case = np.load(path)
        text = bytes(case["text_ids"].astype(np.uint8)).decode("ascii")
        wrapped = f"<|im_start|>assistant\n{text}<|im_end|>\n<|im_start|>assistant\n"
        assert made.encode(wrapped).ids == case["input_ids"][0].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_gguf_talker_has_every_weight_of_the_checkpoint(tmp_path, checkpoint, kind):
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "talker.gguf"
    gguf_talker.write_talker(checkpoint, path, kind)
    reader = gguf.GGUFReader(str(path))
    stored = {tensor.name: tensor for tensor in reader.tensors}
    wanted = dict(gguf_talker.tensors(checkpoint))
    assert set(stored) == set(wanted)
    for name, values in wanted.items():
        found = gguf.quants.dequantize(stored[name].data, stored[name].tensor_type)
        assert np.abs(found.reshape(values.shape) - values).max() <= (
            KINDS[kind] * max(1.0, np.abs(values).max()))
    field = reader.get_field("qwen3tts.rope.dimension_sections")
    assert [int(field.parts[i][0]) for i in field.data] == [6, 5, 5, 0]


@pytest.mark.parametrize("kind", [*KINDS, "q4_k"])
def test_llama_cpp_reads_the_talker_and_agrees_with_the_reference(tmp_path, checkpoint, kind):
    pytest.importorskip("gguf")
    pytest.importorskip("llama_cpp")
    from omni_ros.speech.qwen3.talker_llama import LlamaTalker

    path = tmp_path / "talker.gguf"
    gguf_talker.write_talker(checkpoint, path, kind)
    case = np.load(ORACLE / "case1.npz")
    talker = LlamaTalker(path, width=128, codes=3072, limit=64, threads=1,
                         exact_cache=kind in ("f32", "f16"))
    hidden, logits = talker.feed(case["prompt_embeds_stream"])
    talker.close()
    difference = np.abs(hidden - case["hidden_stream"][0]).max()
    assert difference <= {"f32": 1e-5, "f16": 5e-3, "q8_0": 0.3, "q4_0": 3.0, "q4_k": 3.0}[kind]
    assert np.isfinite(logits).all() and logits.shape == (3072,)


def test_a_talker_that_llama_cpp_has_not_is_refused_and_told_of(tmp_path, checkpoint):
    other = tmp_path / "made"
    write_checkpoint(other, size="tiny")
    config = json.loads((other / "config.json").read_text())
    config["talker_config"]["attention_bias"] = True
    (other / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="q_proj.bias"):
        load.load_checkpoint(other)


def test_tables_are_what_the_checkpoint_says(tmp_path, checkpoint):
    from omni_ros.models.export.qwen3_tts_sections import TABLES, write_tables

    write_tables(checkpoint, tmp_path)
    text = np.load(tmp_path / TABLES["text"], mmap_mode="r")
    case = np.load(ORACLE / "case1.npz")
    first = text[case["input_ids"][0, :3]]
    assert np.abs(first - case["prompt_embeds_stream"][:3]).max() <= 1e-5
    predictor = np.load(tmp_path / TABLES["predictor"])
    row = checkpoint.speech.get("talker.code_predictor.model.codec_embedding.3.weight")[7]
    assert np.array_equal(predictor[3 * 256 + 7], row.numpy())
