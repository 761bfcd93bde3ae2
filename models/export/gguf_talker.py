# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The talker for llama.cpp: a GGUF file of its architecture "qwen3tts", by the gguf package.

Prompts are built by the host and handed over as embeddings, so the file's vocabulary is the codes
alone: a third of the size, and logits that need no padding. Kinds: f32, f16, q8_0 and q4_0 by the
gguf package; q4_k by llama.cpp itself, from f16.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from omni_ros.requirements import require

from ..common.errors import CheckpointError
from ..qwen3_tts import keys
from ..qwen3_tts.load import QwenCheckpoint

ARCHITECTURE = "qwen3tts"
#: What llama.cpp's graph of this architecture has as a constant.
CODES = 3072
#: Of llama.h: LLAMA_FTYPE_MOSTLY_Q4_K_M.
_Q4_K_M = 15
_kept: dict[str, Any] = {}
_PURPOSE = "to write the talker for llama.cpp"
#: Parameters of a layer: name in GGUF, name in the checkpoint.
LAYER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def write_talker(checkpoint: QwenCheckpoint, path: Path, kind: str) -> None:
    """Write the talker's layers, table and head.

    :param kind: f32, f16, q8_0, q4_0 or q4_k.
    :raises CheckpointError: llama.cpp has no such network.
    :raises MissingDependency: gguf, or for q4_k llama-cpp-python, is not installed.
    """
    check(checkpoint)
    if kind != "q4_k":
        write(checkpoint, path, kind)
        return
    llama = require("llama_cpp", _PURPOSE + " as q4_k")
    between = path.with_suffix(".f16")
    try:
        write(checkpoint, between, "f16")
        parameters = llama.llama_model_quantize_default_params()
        parameters.ftype, parameters.nthread = _Q4_K_M, torch.get_num_threads()
        silence(llama)
        failed = llama.llama_model_quantize(
            str(between).encode(), str(path).encode(), ctypes.byref(parameters))
        if failed:
            raise CheckpointError(f"{path}: llama.cpp could not make it q4_k (status {failed})")
    finally:
        between.unlink(missing_ok=True)


def silence(llama: Any) -> None:
    """Let llama.cpp print nothing. It calls this until the process ends, so it has to stay."""
    if "log" not in _kept:
        _kept["log"] = llama.llama_log_callback(lambda level, text, data: None)
        llama.llama_log_set(_kept["log"], ctypes.c_void_p(0))


def check(checkpoint: QwenCheckpoint) -> None:
    """Refuse what llama.cpp's graph would compute otherwise."""
    sizes = checkpoint.config.talker
    if sizes.codes != CODES:
        raise CheckpointError(
            f"{checkpoint.folder}: the talker has {sizes.codes} codes, llama.cpp's {ARCHITECTURE} "
            f"has {CODES}: leave out the GGUF files, the programs do without"
        )
    if sizes.stack.bias:
        raise CheckpointError(
            f"{checkpoint.folder}: attention_bias is true, llama.cpp's {ARCHITECTURE} has none: "
            "leave out the GGUF files"
        )


def write(checkpoint: QwenCheckpoint, path: Path, kind: str) -> None:
    gguf = require("gguf", _PURPOSE)
    config = checkpoint.config.talker
    sizes = config.stack
    writer = gguf.GGUFWriter(str(path), ARCHITECTURE)
    writer.add_name(checkpoint.folder.resolve().name)
    writer.add_file_type({"f32": 0, "f16": 1, "q8_0": 7, "q4_0": 2}[kind])
    writer.add_vocab_size(config.codes)
    writer.add_tokenizer_model("none")
    writer.add_context_length(config.positions)
    writer.add_embedding_length(sizes.width)
    writer.add_block_count(sizes.layers)
    writer.add_feed_forward_length(sizes.mlp)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.kv_heads)
    writer.add_key_length(sizes.head_dim)
    writer.add_value_length(sizes.head_dim)
    writer.add_layer_norm_rms_eps(sizes.eps)
    writer.add_rope_freq_base(sizes.rope_base)
    # A speech prompt's three positions are always equal, so how they share the angles is no matter,
    # if only each is somebody's: angle i is that of position i % 3, else of a fourth that is 0.
    angles = sizes.head_dim // 2
    writer.add_rope_dimension_sections([(angles + 2) // 3, (angles + 1) // 3, angles // 3, 0])
    for name, values in tensors(checkpoint):
        stored = values.astype(np.float32)
        if stored.ndim == 1 or kind == "f32":
            writer.add_tensor(name, stored)
            continue
        type_ = gguf.GGMLQuantizationType[kind.upper()]
        block = gguf.GGML_QUANT_SIZES[type_][0]
        if stored.shape[-1] % block:
            type_ = gguf.GGMLQuantizationType.F16
        writer.add_tensor(name, gguf.quants.quantize(stored, type_), raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors(checkpoint: QwenCheckpoint) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the tensors by their names in GGUF."""
    weights = checkpoint.speech
    yield "token_embd.weight", weights.get(keys.CODEC_TABLE).numpy()
    for index in range(checkpoint.config.talker.stack.layers):
        for ours, theirs in LAYER.items():
            key = f"talker.model.layers.{index}.{theirs}.weight"
            yield f"blk.{index}.{ours}.weight", weights.get(key).numpy()
    yield "output_norm.weight", weights.get("talker.model.norm.weight").numpy()
    yield "output.weight", weights.get("talker.codec_head.weight").numpy()
