# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Example inputs of each stage: the shapes programs are exported with, and every name.

Of a network of three stages, see `models.smolvla.policy` and `models.pi0.policy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from omni_ros.policy.prefix import PRESENT, UNUSED, action_rope, prefix_rope


def example_inputs(model: Any, seed: int = 0) -> dict[str, tuple[torch.Tensor, ...]]:
    """Return distinct contiguous float32 tensors for every stage, in order of their inputs."""
    config, layout = model.config, model.layout
    width, head_dim = config.text.width, config.text.head_dim
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    token_mask = torch.ones(config.language, dtype=torch.bool).numpy()
    valid = layout.valid([PRESENT] * layout.slots, token_mask)
    backbone = (
        *(normal(config.image_tokens, width) for _ in range(layout.slots)),
        normal(config.language, width) * width**-0.5,
        *((normal(1, config.max_state),) if model.state_in == "prefix" else ()),
        torch.from_numpy(valid),
        *(torch.from_numpy(table) for table in prefix_rope(valid, head_dim, kind=model.rope)),
    )
    kv_heads, length = config.text.kv_heads, layout.length
    keys_values = (
        normal(*shape)
        for _ in range(config.layers)
        for shape in ((kv_heads, head_dim, length), (kv_heads, length, head_dim))
    )
    head = (
        normal(config.chunk, config.max_action),
        normal(1, config.expert_width),
        *((normal(1, config.max_state),) if model.state_in == "suffix" else ()),
        torch.from_numpy(valid.copy()),
        *(torch.from_numpy(table)
          for table in action_rope(valid, model.suffix, head_dim, kind=model.rope)),
        *keys_values,
    )
    pixels = torch.rand(3, config.image_height, config.image_width, generator=generator) * 2 - 1
    return {"vision_encoder": (pixels,), "fusion_backbone": backbone, "action_head": head}


def input_names(model: Any) -> dict[str, tuple[str, ...]]:
    """Return a name for every input of every stage, in order."""
    return {
        "vision_encoder": ("pixels",),
        "fusion_backbone": (
            *(f"image_{slot}" for slot in range(model.slots)),
            "language", *(("state",) if model.state_in == "prefix" else ()), "valid", "cos", "sin",
        ),
        "action_head": (
            "noisy", "time", *(("state",) if model.state_in == "suffix" else ()), "valid", "cos",
            "sin", *keys_values_names(model),
        ),
    }


def output_names(model: Any) -> dict[str, tuple[str, ...]]:
    """Return a name for every output of every stage, in order."""
    return {
        "vision_encoder": ("image",),
        "fusion_backbone": keys_values_names(model),
        "action_head": ("velocity",),
    }


def keys_values_names(model: Any) -> tuple[str, ...]:
    return tuple(
        f"{kind}_{layer}" for layer in range(model.config.layers) for kind in ("keys", "values")
    )


def golden_inputs(model: Any, stage: str) -> tuple[torch.Tensor, ...]:
    """Return other inputs than the examples: another seed, half the prompt, a slot masked."""
    given = example_inputs(model, seed=1)[stage]
    if stage == "vision_encoder":
        return given
    config, slots = model.config, model.layout.slots
    tokens = np.arange(config.language) < max(1, config.language // 2)
    present = [PRESENT] * max(1, slots - 1)
    valid = model.layout.valid([*present, *[UNUSED] * (slots - len(present))], tokens)
    head_dim = config.text.head_dim
    named = dict(zip(input_names(model)[stage], given, strict=True))
    if stage == "fusion_backbone":
        cos, sin = prefix_rope(valid, head_dim, kind=model.rope)
    else:
        cos, sin = action_rope(valid, model.suffix, head_dim, kind=model.rope)
    for name, array in (("valid", valid), ("cos", cos), ("sin", sin)):
        named[name] = torch.from_numpy(array)
    return tuple(named.values())
