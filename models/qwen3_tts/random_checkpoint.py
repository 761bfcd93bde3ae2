# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Write a Qwen3-TTS checkpoint of random weights in the released layout, for benches and tests.

    python -m omni_ros.models.qwen3_tts.random_checkpoint OUT [--size 0.6b|1.7b] [--kind base]

Written one tensor at a time, so that memory stays at the size of the largest. What it says means
nothing; its speed and memory are those of a trained one. The tokenizer is one of bytes.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import torch

from . import keys
from .config import CODEC_IDS, TEXT_IDS, QwenConfig
from .keys import Part
from .read_config import read_config
from .tokenizer import NAME, byte_tokenizer

#: talker: width, mlp, layers, heads, key heads, head width; text width; predictor likewise;
#: vocoder: width, mlp, layers, heads, head width, codebook, latent, channels.
SIZES = {
    "0.6b": ((1024, 3072, 28, 16, 8, 128), 2048, (1024, 3072, 5, 16, 8, 128),
             (512, 1024, 8, 16, 64, 512, 1024, 1536)),
    "1.7b": ((2048, 6144, 28, 16, 8, 128), 2048, (1024, 3072, 5, 16, 8, 128),
             (512, 1024, 8, 16, 64, 512, 1024, 1536)),
    # Widths of talker and predictor differ, as in 1.7b; and agree, as in 0.6b.
    "tiny": ((64, 128, 2, 4, 2, 16), 48, (32, 64, 2, 4, 2, 8), (32, 64, 2, 4, 8, 32, 32, 32)),
    "tiny_equal": ((64, 128, 2, 4, 2, 16), 48, (64, 96, 1, 4, 2, 16),
                   (32, 64, 1, 4, 8, 32, 32, 32)),
}
#: text rows, codes of the other groups, upsampling, window
COUNTS = {
    "0.6b": (151936, 2048, ((8, 5, 4, 3), (2, 2)), 72),
    "1.7b": (151936, 2048, ((8, 5, 4, 3), (2, 2)), 72),
    "tiny": (320, 64, ((4, 3), (2,)), 12),
    "tiny_equal": (320, 64, ((4, 3), (2,)), 12),
}
KINDS = ("base", "custom_voice")
MARKS = ("<|im_start|>", "<|im_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>", "assistant")
SPEAKERS = {"robo": 2301, "sage": 2302}
LANGUAGES = {"chinese": 2055, "english": 2050, "german": 2053, "japanese": 2058}


def write_checkpoint(
    out: Path, *, size: str = "0.6b", kind: str = "base", seed: int = 0, dtype: str = "bf16"
) -> QwenConfig:
    """Write a checkpoint into a new folder and return its sizes."""
    out.mkdir(parents=True)
    (out / "speech_tokenizer").mkdir()
    top, sound = configs(size, kind)
    for path, values in ((out / "config.json", top),
                         (out / "speech_tokenizer" / "config.json", sound)):
        path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    ids = {name: top[theirs] for name, theirs in TEXT_IDS.items()}
    marks = dict(zip(MARKS, (ids[name] for name in (
        "im_start", "im_end", "tts_pad", "tts_bos", "tts_eos", "assistant")), strict=True))
    (out / NAME).write_text(byte_tokenizer(marks), encoding="utf-8")
    config = read_config(out)
    write_tensors(out / "model.safetensors", keys.talker_file(config), seed, dtype)
    vocoder = [*keys.vocoder_file(config.vocoder), *keys.inputs_of_quantizer(config.vocoder)]
    write_tensors(out / "speech_tokenizer" / "model.safetensors", vocoder, seed + 1, dtype)
    return config


def configs(size: str, kind: str) -> tuple[dict, dict]:
    """Return config.json and speech_tokenizer/config.json."""
    talker, text_width, predictor, vocoder = SIZES[size]
    rows, codes, (rates, ratios), window = COUNTS[size]
    first = rows - len(MARKS) - 2
    text_ids = {theirs: first + index for index, theirs in enumerate(TEXT_IDS.values())}
    codec = dict(zip(CODEC_IDS.values(), (2150, 2154, 2155, 2156, 2157, 2148, 2149), strict=True))
    section = [(talker[5] // 2 + 2 - part) // 3 for part in range(3)]
    top = {
        "architectures": ["Qwen3TTSForConditionalGeneration"], "model_type": "qwen3_tts",
        "tts_model_type": kind, "tts_model_size": size.replace(".", "b").rstrip("b"),
        "tokenizer_type": "qwen3_tts_tokenizer_12hz", **text_ids,
        "talker_config": {
            **stack(talker, 1e-6, 1000000), "vocab_size": 3072, "max_position_embeddings": 32768,
            "num_code_groups": 16, "text_hidden_size": text_width, "text_vocab_size": rows,
            "rope_scaling": {"interleaved": True, "mrope_section": section,
                             "rope_type": "default", "type": "default"},
            **codec, "codec_language_id": LANGUAGES,
            "spk_id": SPEAKERS if kind == "custom_voice" else {},
            "spk_is_dialect": {"robo": False, "sage": False} if kind == "custom_voice" else {},
            "code_predictor_config": {
                **stack(predictor, 1e-6, 1000000), "vocab_size": codes, "num_code_groups": 16,
            },
        },
    }
    width, mlp, layers, heads, head_dim, codebook, latent, channels = vocoder
    total = math.prod(rates) * math.prod(ratios)
    sound = {
        "model_type": "qwen3_tts_tokenizer_12hz", "input_sample_rate": 24000,
        "output_sample_rate": 24000, "decode_upsample_rate": total,
        "decoder_config": {
            **stack((width, mlp, layers, heads, heads, head_dim), 1e-5, 10000),
            "codebook_size": codes,
            "codebook_dim": codebook, "latent_dim": latent, "decoder_dim": channels,
            "sliding_window": window, "num_quantizers": 16, "num_semantic_quantizers": 1,
            "upsample_rates": list(rates), "upsampling_ratios": list(ratios),
            "max_position_embeddings": 8000,
        },
    }
    return top, sound


def stack(sizes: tuple[int, ...], eps: float, base: int) -> dict:
    """Return the fields of a stack of layers."""
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
             "num_key_value_heads", "head_dim")
    return {**dict(zip(names, sizes, strict=True)), "hidden_act": "silu", "rms_norm_eps": eps,
            "rope_theta": base, "attention_bias": False}


def write_tensors(path: Path, parts: Iterable[Part], seed: int, dtype: str) -> None:
    """Write a safetensors file, a tensor at a time."""
    names = {"bf16": ("BF16", torch.bfloat16, 2), "f16": ("F16", torch.float16, 2),
             "f32": ("F32", torch.float32, 4)}
    label, kind, width = names[dtype]
    parts, header, offset = list(parts), {}, 0
    for part in parts:
        size = width * math.prod(part.shape)
        header[part.key] = {"dtype": label, "shape": list(part.shape),
                            "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for part in parts:
            values = draw(part, seed).to(kind).contiguous()
            file.write(values.view(torch.uint8).numpy().data)


def draw(part: Part, seed: int) -> torch.Tensor:
    """Return values that keep activations of about the same size from layer to layer."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {part.key}".encode()))
    name, shape = part.key, part.shape
    if name.endswith((".cluster_usage",)):
        return torch.ones(shape)
    if name.endswith(("norm.weight", "layernorm.weight")):
        return 1.0 + 0.05 * torch.randn(shape, generator=generator)
    if name.endswith((".bias", ".alpha", ".beta")):
        return 0.02 * torch.randn(shape, generator=generator)
    if name.endswith((".scale", ".gamma")):
        return 0.1 + 0.01 * torch.randn(shape, generator=generator)
    if "embedding" in name:
        return torch.randn(shape, generator=generator)
    # Of a transposed convolution, [in, out, twice the stride], two terms meet in each sample.
    transposed = "decoder.decoder" in name and name.endswith("block.1.conv.weight")
    fan_in = 2 * shape[0] if transposed else math.prod(shape[1:])
    # What a residual unit adds stays small, or sums over them grow until samples are cut off.
    share = 0.1 if name.endswith((".conv2.conv.weight", "decoder.6.conv.weight")) else 1.0
    return share * torch.randn(shape, generator=generator) / math.sqrt(fan_in)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder to be made")
    parser.add_argument("--size", choices=SIZES, default="0.6b")
    parser.add_argument("--kind", choices=KINDS, default="base")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=("bf16", "f16", "f32"), default="bf16")
    given = parser.parse_args()
    write_checkpoint(given.out, size=given.size, kind=given.kind, seed=given.seed,
                     dtype=given.dtype)


if __name__ == "__main__":
    main()
