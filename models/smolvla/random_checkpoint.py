# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Write a SmolVLA checkpoint of random weights in LeRobot's layout, for benches and tests.

    python -m omni_ros.models.smolvla.random_checkpoint OUT --tokenizer DIR [--dtype bf16]

The real size (450 M parameters) is written one tensor at a time, so that memory stays at the size
of the largest. What it computes means nothing; its speed and memory are those of a trained one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from ..common.keys import gated_mlp, linear
from ..common.processors import ACTION, STATE
from ..common.random_weights import (
    DTYPES, copy_tokenizer, prompt_steps, random_statistics, random_tensor, write_processors,
    write_weights,
)
from ..common.steps import NEWLINE
from .config import SmolVLAConfig, TextConfig, VisionConfig
from .keys import TEXT, TOKENS, VLM, entries

REAL = SmolVLAConfig(
    vision=VisionConfig(width=768, mlp=3072, layers=12, heads=12, patch=16, table_side=32,
                        eps=1e-6),
    text=TextConfig(width=960, mlp=2560, layers=16, heads=15, kv_heads=5, head_dim=64,
                    vocabulary=49280, eps=1e-5),
    shuffle=4, expert_width=720, expert_mlp=2048,
    self_attention=tuple(layer % 2 == 0 for layer in range(16)),
    chunk=50, steps=10, action=6, state=6, max_action=32, max_state=32,
    image_height=512, image_width=512, language=48, special_tokens=False,
    min_period=0.004, max_period=4.0, n_action_steps=50,
)
TINY = SmolVLAConfig(
    vision=VisionConfig(width=16, mlp=32, layers=1, heads=2, patch=8, table_side=4, eps=1e-6),
    text=TextConfig(width=24, mlp=48, layers=2, heads=3, kv_heads=1, head_dim=8, vocabulary=512,
                    eps=1e-5),
    shuffle=2, expert_width=18, expert_mlp=256, self_attention=(True, False),
    chunk=6, steps=3, action=3, state=4, max_action=8, max_state=8,
    image_height=32, image_width=32, language=12, special_tokens=False,
    min_period=0.004, max_period=4.0, n_action_steps=6,
)
SIZES = {"real": REAL, "tiny": TINY}


def tensor_shapes(config: SmolVLAConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield every tensor LeRobot saves, those that inference does not read included."""
    text, last = config.text, f"{TEXT}.layers.{config.text.layers - 1}"
    heads = text.heads * text.head_dim
    unread = [
        *linear(f"{last}.self_attn.q_proj", "", heads, text.width, bias=False),
        *linear(f"{last}.self_attn.o_proj", "", text.width, heads, bias=False),
        *gated_mlp(f"{last}.mlp", "", text.width, text.mlp),
    ]
    yield from ((entry.key, entry.shape) for entry in (*entries(config), *unread))
    yield f"{last}.post_attention_layernorm.weight", (text.width,)
    yield f"{TEXT}.norm.weight", (text.width,)
    yield TOKENS, (text.vocabulary, text.width)
    yield f"{VLM}.lm_head.weight", (text.vocabulary, text.width)


def backbone_config(config: SmolVLAConfig) -> dict:
    """Return the backbone's config.json."""
    text, vision = config.text, config.vision
    return {
        "model_type": "smolvlm", "scale_factor": config.shuffle,
        "text_config": {
            "hidden_size": text.width, "intermediate_size": text.mlp,
            "num_attention_heads": text.heads, "num_key_value_heads": text.kv_heads,
            "head_dim": text.head_dim, "num_hidden_layers": 2 * text.layers,
            "rms_norm_eps": text.eps, "vocab_size": text.vocabulary,
        },
        "vision_config": {
            "hidden_size": vision.width, "intermediate_size": vision.mlp,
            "num_attention_heads": vision.heads, "num_hidden_layers": vision.layers,
            "image_size": vision.table_side * vision.patch, "patch_size": vision.patch,
            "layer_norm_eps": vision.eps,
        },
    }


def policy_config(config: SmolVLAConfig, cameras: int) -> dict:
    """Return the policy's config.json."""
    images = {
        f"observation.images.camera{index + 1}": {"type": "VISUAL", "shape": [3, 256, 256]}
        for index in range(cameras)
    }
    every = config.self_attention.index(True, 1) if config.self_attention.count(True) > 1 else 2
    return {
        "type": "smolvla", "n_obs_steps": 1,
        "input_features": {
            "observation.state": {"type": "STATE", "shape": [config.state]}, **images,
        },
        "output_features": {"action": {"type": "ACTION", "shape": [config.action]}},
        "normalization_mapping": {"VISUAL": "IDENTITY", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"},
        "chunk_size": config.chunk, "n_action_steps": config.n_action_steps,
        "max_state_dim": config.max_state, "max_action_dim": config.max_action,
        "resize_imgs_with_padding": [config.image_width, config.image_height], "empty_cameras": 0,
        "adapt_to_pi_aloha": False, "use_delta_joint_actions_aloha": False,
        "tokenizer_max_length": config.language, "num_steps": config.steps, "vlm_model_name": "vlm",
        "add_image_special_tokens": config.special_tokens, "attention_mode": "cross_attn",
        "prefix_length": 0, "pad_language_to": "max_length", "num_expert_layers": -1,
        "num_vlm_layers": config.layers, "self_attn_every_n_layers": every,
        "expert_width_multiplier": config.expert_width / config.text.width,
        "min_period": config.min_period, "max_period": config.max_period,
    }


def write_checkpoint(
    folder: Path, config: SmolVLAConfig = TINY, *, tokenizer: Path | None = None,
    cameras: int = 1, dtype: str = "f32", seed: int = 0, shard_bytes: int | None = None,
) -> Path:
    """Write folder/checkpoint and folder/vlm (with the tokenizer's files); return the former."""
    checkpoint, vlm = folder / "checkpoint", folder / "vlm"
    checkpoint.mkdir(parents=True, exist_ok=True)
    copy_tokenizer(tokenizer, vlm)
    (vlm / "config.json").write_text(json.dumps(backbone_config(config), indent=2))
    policy = policy_config(config, cameras)
    (checkpoint / "config.json").write_text(json.dumps(policy, indent=2))
    write_processors(
        checkpoint, random_statistics({STATE: config.state, ACTION: config.action}, seed), policy,
        prompt_steps(config.language, "vlm", NEWLINE),
    )
    write_weights(
        checkpoint, list(tensor_shapes(config)), dtype,
        lambda name, shape: random_tensor(name, shape, seed, table=TOKENS), shard_bytes,
    )
    return checkpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="real")
    parser.add_argument("--tokenizer", type=Path, help="folder whose files are copied beside it")
    parser.add_argument("--cameras", type=int, default=3)
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="f32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard-mb", type=int, help="several files of about this size")
    options = parser.parse_args()
    shard_bytes = options.shard_mb * 2**20 if options.shard_mb else None
    print(write_checkpoint(
        options.out, SIZES[options.size], tokenizer=options.tokenizer, cameras=options.cameras,
        dtype=options.dtype, seed=options.seed, shard_bytes=shard_bytes,
    ))


if __name__ == "__main__":
    main()
