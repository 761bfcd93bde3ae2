# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Write a π0 or π0.5 checkpoint of random weights in LeRobot's layout, for benches and tests.

    python -m omni_ros.models.pi0.random_checkpoint OUT --tokenizer DIR [--dtype bf16] [--pi05]

The real size (3.5 B parameters, 3.2 B of which inference reads) is written in shards, one tensor at a
time. What it computes means nothing; its speed and memory are those of a trained one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from ..common.config import TextConfig, VisionConfig
from ..common.keys import gated_mlp, linear
from ..common.processors import ACTION, STATE
from ..common.random_weights import (
    DTYPES, copy_tokenizer, prompt_steps, random_statistics, random_tensor, write_processors,
    write_weights,
)
from ..common.steps import PI0_NEWLINE, PI05_PROMPT
from .config import Pi0Config
from .keys import PAIR, TEXT, TOKENS_TIED, VISION, entries
from .openpi import CAMERAS

REAL = Pi0Config(
    vision=VisionConfig(width=1152, mlp=4304, layers=27, heads=16, patch=14, table_side=16,
                        eps=1e-6),
    text=TextConfig(width=2048, mlp=16384, layers=18, heads=8, kv_heads=1, head_dim=256,
                    vocabulary=257152, eps=1e-6),
    expert_width=1024, expert_mlp=4096, adaptive=False, chunk=50, steps=10, action=14, state=14,
    max_action=32, max_state=32, image_height=224, image_width=224, language=48,
    min_period=0.004, max_period=4.0, n_action_steps=50,
)
TINY = Pi0Config(
    vision=VisionConfig(width=16, mlp=32, layers=1, heads=2, patch=8, table_side=4, eps=1e-6),
    text=TextConfig(width=24, mlp=48, layers=2, heads=3, kv_heads=1, head_dim=8, vocabulary=640,
                    eps=1e-6),
    expert_width=16, expert_mlp=32, adaptive=False, chunk=6, steps=3, action=3, state=4,
    max_action=8, max_state=8, image_height=32, image_width=32, language=16, min_period=0.004,
    max_period=4.0, n_action_steps=6,
)
SIZES = {"real": REAL, "tiny": TINY}


def as_pi05(config: Pi0Config) -> Pi0Config:
    """Return the same sizes as a π0.5, whose prompt holds the state and is longer."""
    return replace(config, adaptive=True, language=200 if config is REAL else 64)


def tensor_shapes(config: Pi0Config) -> Iterator[tuple[str, tuple[int, ...]]]:
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
    yield TOKENS_TIED, (text.vocabulary, text.width)
    yield f"{PAIR}.gemma_expert.lm_head.weight", (text.vocabulary, config.expert_width)


def make_tensor(name: str, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Return random values; Gemma's norms multiply by 1 + weight."""
    return random_tensor(name, shape, seed, table=TOKENS_TIED,
                         norm=1.0 if name.startswith(VISION) else 0.0)


def policy_config(config: Pi0Config, cameras: int) -> dict:
    """Return config.json's content."""
    names = [*CAMERAS, *(f"camera{index}" for index in range(len(CAMERAS), cameras))][:cameras]
    picture = {"type": "VISUAL", "shape": [3, config.image_height, config.image_width]}
    mode = "QUANTILES" if config.adaptive else "MEAN_STD"
    return {
        "type": "pi05" if config.adaptive else "pi0", "n_obs_steps": 1,
        "input_features": {
            **{f"observation.images.{name}": picture for name in names},
            STATE: {"type": "STATE", "shape": [config.state]},
        },
        "output_features": {ACTION: {"type": "ACTION", "shape": [config.action]}},
        "normalization_mapping": {"VISUAL": "IDENTITY", "STATE": mode, "ACTION": mode},
        "paligemma_variant": "gemma_2b", "action_expert_variant": "gemma_300m",
        "dtype": "float32", "chunk_size": config.chunk, "n_action_steps": config.n_action_steps,
        "max_state_dim": config.max_state, "max_action_dim": config.max_action,
        "num_inference_steps": config.steps, "min_period": config.min_period,
        "max_period": config.max_period, "empty_cameras": 0, "rtc_config": None,
        "image_resolution": [config.image_height, config.image_width],
        "tokenizer_max_length": config.language,
    }


def write_checkpoint(
    folder: Path, config: Pi0Config = TINY, *, tokenizer: Path | None = None, cameras: int = 1,
    dtype: str = "f32", seed: int = 0, shard_bytes: int | None = None,
    relative: dict | None = None,
) -> Path:
    """Write folder/checkpoint and folder/tokenizer; return the former.

    :param relative: the config of a relative_actions_processor.
    """
    checkpoint, place = folder / "checkpoint", folder / "tokenizer"
    checkpoint.mkdir(parents=True, exist_ok=True)
    copy_tokenizer(tokenizer, place)
    # The heads of a vision tower of another width than the real one are known by nothing else.
    heads = {"vision_config": {"num_attention_heads": config.vision.heads}}
    (place / "config.json").write_text(json.dumps(heads, indent=2))
    policy = policy_config(config, cameras)
    (checkpoint / "config.json").write_text(json.dumps(policy, indent=2))
    newline = PI05_PROMPT if config.adaptive else PI0_NEWLINE
    write_processors(
        checkpoint, random_statistics({STATE: config.state, ACTION: config.action}, seed), policy,
        prompt_steps(config.language, "tokenizer", newline), relative=relative,
    )
    write_weights(
        checkpoint, list(tensor_shapes(config)), dtype,
        lambda name, shape: make_tensor(name, shape, seed), shard_bytes,
    )
    return checkpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="real")
    parser.add_argument("--pi05", action="store_true", help="a π0.5 instead of a π0")
    parser.add_argument("--tokenizer", type=Path, help="folder whose files are copied beside it")
    parser.add_argument("--cameras", type=int, default=3)
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="bf16")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard-mb", type=int, default=2000, help="files of about this size")
    options = parser.parse_args()
    config = SIZES[options.size]
    print(write_checkpoint(
        options.out, as_pi05(config) if options.pi05 else config, tokenizer=options.tokenizer,
        cameras=options.cameras, dtype=options.dtype, seed=options.seed,
        shard_bytes=options.shard_mb * 2**20,
    ))


if __name__ == "__main__":
    main()
