# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How much there is to compute in a policy, counted from its sizes."""

from __future__ import annotations

from typing import Any


def smolvla_work(config: Any, slots: int) -> dict[str, float]:
    """Return floating-point operations of one run of each program (a product counts as two).

    Matrix products only; norms, activations and softmax add about a percent.

    :param config: `omni_ros.models.smolvla.config.SmolVLAConfig`.
    :param slots: image slots of the bundle; masked ones are computed, too.
    """
    return {
        "vision_encoder": vision(config),
        "fusion_backbone": backbone(config, slots),
        "action_head": head(config, slots),
    }


def pi0_work(config: Any, slots: int) -> dict[str, float]:
    """The same of a π0 or π0.5.

    :param config: `omni_ros.models.pi0.config.Pi0Config`.
    """
    text, length = config.text, slots * config.image_tokens + config.language
    heads, width, suffix = text.heads * text.head_dim, config.expert_width, config.suffix
    layer = 2 * length * text.width * heads + 3 * length * text.width * text.mlp
    layer += 2 * length * length * heads
    prefix = text.layers * 2 * length * text.width * text.kv_width + (text.layers - 1) * layer
    expert = 2 * suffix * width * (heads + text.kv_width) + 3 * suffix * width * config.expert_mlp
    expert += 2 * suffix * (length + suffix) * heads
    if config.adaptive:
        expert += 6 * width * width  # scale, shift and gate of two norms, one row each
    edge = 2 * config.chunk * config.max_action * width + 2 * width * width
    edge += 0 if config.adaptive else 2 * config.chunk * width * width
    return {"vision_encoder": vision(config), "fusion_backbone": 2.0 * prefix,
            "action_head": 2.0 * (text.layers * expert + edge)}


def prefix_length(config: Any, slots: int) -> int:
    """Return the tokens that a backbone with so many image slots sees."""
    marks = 3 if config.special_tokens else 0
    return slots * (config.image_tokens + marks) + config.language + 1


def vision(config: Any) -> float:
    tower = config.vision
    rows, columns = config.patches
    patches, width = rows * columns, tower.width
    layer = 4 * patches * width * width + 2 * patches * width * tower.mlp
    layer += 2 * patches * patches * width
    edge = patches * 3 * tower.patch**2 * width
    edge += config.image_tokens * width * getattr(config, "shuffle", 1) ** 2 * config.text.width
    return 2.0 * (tower.layers * layer + edge)


def backbone(config: Any, slots: int) -> float:
    text, length = config.text, prefix_length(config, slots)
    heads = text.heads * text.head_dim
    keys_values = 2 * length * text.width * config.kv_width
    rest = 2 * length * text.width * heads + 3 * length * text.width * text.mlp
    rest += 2 * length * length * heads
    # The last layer stops at keys and values.
    total = text.layers * keys_values + (text.layers - 1) * rest
    total += config.self_attention.count(False) * 2 * length * config.kv_width**2
    return 2.0 * (total + config.max_state * text.width)


def head(config: Any, slots: int) -> float:
    chunk, width, prefix = config.chunk, config.expert_width, prefix_length(config, slots)
    heads = config.text.heads * config.text.head_dim
    total = 2 * chunk * config.max_action * width + (2 * chunk + 1) * width * width
    for self_attention in config.self_attention:
        total += 2 * chunk * width * heads + 3 * chunk * width * config.expert_mlp
        total += 2 * chunk * (prefix + chunk * self_attention) * heads
        total += self_attention * 2 * chunk * width * config.kv_width
    return 2.0 * total
