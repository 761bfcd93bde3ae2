# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which tensor of a LeRobot checkpoint becomes which parameter of ours, and of what shape."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..common.keys import Entry, gated_mlp, linear, norm, siglip
from .config import SmolVLAConfig

VLM = "model.vlm_with_expert.vlm"
VISION = f"{VLM}.model.vision_model"
CONNECTOR = f"{VLM}.model.connector.modality_projection.proj.weight"
TEXT = f"{VLM}.model.text_model"
TOKENS = f"{TEXT}.embed_tokens.weight"
EXPERT = "model.vlm_with_expert.lm_expert"


def entries(config: SmolVLAConfig) -> Iterator[Entry]:
    """Yield every tensor that is used, but the token table (`TOKENS`), which is no parameter."""
    yield from vision_entries(config)
    yield from text_entries(config)
    yield from expert_entries(config)


def vision_entries(config: SmolVLAConfig) -> Iterator[Entry]:
    yield from siglip(VISION, "vision_encoder", config.vision)
    yield Entry(CONNECTOR, (config.text.width, config.vision.width * config.shuffle**2),
                ("vision_encoder.connector.weight",))


def text_entries(config: SmolVLAConfig) -> Iterator[Entry]:
    text, ours = config.text, "fusion_backbone"
    heads, width = text.heads * text.head_dim, text.width
    yield from linear("model.state_proj", f"{ours}.state_proj", width, config.max_state, bias=True)
    for index in range(text.layers):
        key, target = f"{TEXT}.layers.{index}", f"{ours}.layers.{index}"
        yield from norm(f"{key}.input_layernorm", f"{target}.attention_norm", width)
        for name in ("k", "v"):
            yield from linear(f"{key}.self_attn.{name}_proj", f"{target}.{name}", config.kv_width,
                              width, bias=False)
        if index == text.layers - 1:
            break  # its keys and values are all that is read
        yield from linear(f"{key}.self_attn.q_proj", f"{target}.q", heads, width, bias=False)
        yield from linear(f"{key}.self_attn.o_proj", f"{target}.o", width, heads, bias=False)
        yield from norm(f"{key}.post_attention_layernorm", f"{target}.mlp_norm", width)
        yield from gated_mlp(f"{key}.mlp", f"{target}.mlp", width, text.mlp)


def expert_entries(config: SmolVLAConfig) -> Iterator[Entry]:
    ours, width, kv_width = "action_head", config.expert_width, config.kv_width
    heads = config.text.heads * config.text.head_dim
    yield from linear("model.action_in_proj", f"{ours}.action_in", width, config.max_action,
                      bias=True)
    yield Entry("model.action_time_mlp_in.weight", (width, 2 * width),
                (f"{ours}.mix_action.weight", f"{ours}.mix_time.weight"), (width, width))
    yield Entry("model.action_time_mlp_in.bias", (width,), (f"{ours}.mix_time.bias",))
    yield from linear("model.action_time_mlp_out", f"{ours}.mix_out", width, width, bias=True)
    yield from linear("model.action_out_proj", f"{ours}.action_out", config.max_action, width,
                      bias=True)
    for index, own_keys in enumerate(config.self_attention):
        key, target = f"{EXPERT}.layers.{index}", f"{ours}.layers.{index}"
        yield from norm(f"{key}.input_layernorm", f"{target}.attention_norm", width)
        yield from norm(f"{key}.post_attention_layernorm", f"{target}.mlp_norm", width)
        yield from linear(f"{key}.self_attn.q_proj", f"{target}.q", heads, width, bias=False)
        yield from linear(f"{key}.self_attn.o_proj", f"{target}.o", width, heads, bias=False)
        for name in ("k", "v"):
            place = f"{target}.{name}" if own_keys else f"fusion_backbone.cross.{index}.{name}"
            yield from linear(f"{key}.self_attn.{name}_proj", place, kv_width,
                              width if own_keys else kv_width, bias=False)
        yield from gated_mlp(f"{key}.mlp", f"{target}.mlp", width, config.expert_mlp)
    yield from norm(f"{EXPERT}.norm", f"{ours}.norm", width)


def unused(config: SmolVLAConfig, name: str) -> bool:
    """Whether a tensor belongs to the network but nothing at inference reads it."""
    if name in (f"{VLM}.lm_head.weight", f"{TEXT}.norm.weight", f"{EXPERT}.lm_head.weight"):
        return True
    if name.endswith((".rotary_emb.inv_freq", ".embeddings.position_ids")):
        return True  # buffers that older releases saved
    match = re.match(rf"{re.escape(TEXT)}\.layers\.(\d+)\.(.+)$", name)
    if match is None:
        return False
    index, last = int(match[1]), config.text.layers - 1
    read_of_last = ("input_layernorm.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight")
    return index > last or (index == last and match[2] not in read_of_last)
