# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Work out sizes from config.json, the backbone's config.json and the shapes of the tensors.

The checkpoint's config holds no size of the backbone. Shapes give most of them; head counts and
epsilons they do not, so those come from the backbone's config, or from the one backbone known by
name. Whatever two sources both say must agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..common.errors import CheckpointError
from ..common.fields import Fields, Shapes, agree, count_layers, read_eps, shape_of
from .config import SmolVLAConfig, TextConfig, VisionConfig
from .keys import CONNECTOR, EXPERT, TEXT, TOKENS, VISION

DEFAULT_BACKBONE = "HuggingFaceTB/SmolVLM2-500M-Video-Instruct"
KNOWN_BACKBONES: dict[str, dict[str, Any]] = {
    DEFAULT_BACKBONE: {
        "scale_factor": 4,
        "text_config": {
            "hidden_size": 960, "intermediate_size": 2560, "num_attention_heads": 15,
            "num_key_value_heads": 5, "head_dim": 64, "num_hidden_layers": 32,
            "rms_norm_eps": 1e-5, "vocab_size": 49280,
        },
        "vision_config": {
            "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
            "num_hidden_layers": 12, "image_size": 512, "patch_size": 16, "layer_norm_eps": 1e-6,
        },
    }
}

def read_vision(fields: Fields, shapes: Shapes, folder: Path) -> VisionConfig:
    patch_key = f"{VISION}.embeddings.patch_embedding.weight"
    width, _, patch, _ = shape_of(shapes, patch_key, 4, folder)
    table_key = f"{VISION}.embeddings.position_embedding.weight"
    table, _ = shape_of(shapes, table_key, 2, folder)
    mlp_key = f"{VISION}.encoder.layers.0.mlp.fc1.weight"
    mlp, _ = shape_of(shapes, mlp_key, 2, folder)
    where = fields.where
    activation = fields.values.get("hidden_act", "gelu_pytorch_tanh")
    if activation != "gelu_pytorch_tanh":
        raise CheckpointError(f"{where}: hidden_act {activation!r}: expected 'gelu_pytorch_tanh'")
    side = fields.whole("image_size", 224) // fields.whole("patch_size", 32)
    agree(fields.whole("hidden_size", 1152), width, "vision width", where, patch_key)
    agree(fields.whole("patch_size", 32), patch, "patch size", where, patch_key)
    agree(side * side, table, "vision positions", where, table_key)
    agree(fields.whole("intermediate_size", 3072), mlp, "vision MLP width", where, mlp_key)
    return VisionConfig(
        width=width, mlp=mlp, heads=fields.whole("num_attention_heads", 16), patch=patch,
        layers=agree(fields.whole("num_hidden_layers", 12),
                     count_layers(shapes, f"{VISION}.encoder.layers"), "vision layers", where,
                     "the last of them"),
        table_side=side, eps=read_eps(fields, "layer_norm_eps"),
    )


def read_text(fields: Fields, shapes: Shapes, layers: int, folder: Path) -> TextConfig:
    where = fields.where
    vocabulary, width = shape_of(shapes, TOKENS, 2, folder)
    mlp_key = f"{TEXT}.layers.0.mlp.gate_proj.weight"
    mlp, _ = shape_of(shapes, mlp_key, 2, folder)
    q_key, k_key = (f"{TEXT}.layers.0.self_attn.{name}_proj.weight" for name in "qk")
    queries, keys = (shape_of(shapes, key, 2, folder)[0] for key in (q_key, k_key))
    agree(fields.whole("hidden_size"), width, "text width", where, TOKENS)
    # Not the vocabulary: training may have padded the table.
    agree(fields.whole("intermediate_size"), mlp, "text MLP width", where, mlp_key)
    heads = fields.whole("num_attention_heads")
    kv_heads = fields.whole("num_key_value_heads", heads)
    head_dim = fields.whole("head_dim", width // heads)
    for name in ("attention_bias", "mlp_bias"):
        if fields.flag(name, False):
            raise CheckpointError(f"{where}: {name} is true: expected a backbone without biases")
    agree(heads * head_dim, queries, "heads x head_dim", where, q_key)
    agree(kv_heads * head_dim, keys, "key heads x head_dim", where, k_key)
    return TextConfig(
        width=width, mlp=mlp, layers=layers, heads=heads, kv_heads=kv_heads, head_dim=head_dim,
        vocabulary=vocabulary, eps=read_eps(fields, "rms_norm_eps"),
    )


def layer_kinds(fields: Fields, layers: int) -> tuple[bool, ...]:
    """Return, per layer, whether actions attend to each other there."""
    mode = fields.values.get("attention_mode", "cross_attn")
    every = fields.whole("self_attn_every_n_layers", 2, low=-1)
    if mode not in ("cross_attn", "self_attn"):
        raise CheckpointError(
            f"{fields.where}: attention_mode is {mode!r}: expected 'cross_attn' or 'self_attn'"
        )
    if mode == "self_attn":
        return (True,) * layers
    return tuple(every > 0 and index % every == 0 for index in range(layers))


def refuse_unsupported(fields: Fields) -> None:
    """Refuse options that change what the network is given or means."""
    if fields.values.get("type") != "smolvla":
        raise CheckpointError(
            f"{fields.where}: type is {fields.values.get('type')!r}: expected 'smolvla'"
        )
    if fields.whole("n_obs_steps", 1) != 1:
        raise CheckpointError(
            f"{fields.where}: n_obs_steps is {fields.whole('n_obs_steps', 1)}: expected 1; the "
            "network sees one observation"
        )
    for name, why in (
        ("adapt_to_pi_aloha", "it flips joints and rescales grippers outside the network, which "
         "the robot's YAML does instead: train without it"),
        ("use_delta_joint_actions_aloha", "LeRobot itself does not run it"),
    ):
        if fields.flag(name, False):
            raise CheckpointError(f"{fields.where}: {name} is true: expected false; {why}")


def read_config(
    values: Mapping[str, Any], backbone: Mapping[str, Any], shapes: Shapes, *,
    folder: Path, backbone_name: str, state: int, action: int, language: int,
) -> SmolVLAConfig:
    """Return the sizes, or say which two sources disagree."""
    fields = Fields(values, str(folder / "config.json"))
    refuse_unsupported(fields)
    sections = Fields(backbone, backbone_name)
    layers = fields.whole("num_vlm_layers", 16, low=-1)
    available = sections.section("text_config").whole("num_hidden_layers", 32)
    layers = layers if layers > 0 else available
    expert_layers = fields.whole("num_expert_layers", -1, low=-1)
    if expert_layers > 0 and expert_layers != layers:
        raise CheckpointError(
            f"{fields.where}: num_expert_layers is {expert_layers} and num_vlm_layers {layers}: "
            "expected the same (LeRobot fails on it, too)"
        )
    agree(layers, count_layers(shapes, f"{EXPERT}.layers"), "layers (num_vlm_layers)", fields.where,
          "the expert's last")
    vision = read_vision(sections.section("vision_config"), shapes, folder)
    text = read_text(sections.section("text_config"), shapes, layers, folder)
    connector = shape_of(shapes, CONNECTOR, 2, folder)[1]
    shuffle = agree(sections.whole("scale_factor", 2), round((connector / vision.width) ** 0.5),
                    "the connector's scale_factor", backbone_name, CONNECTOR)
    expert_key = f"{EXPERT}.layers.0.mlp.down_proj.weight"
    expert_width, expert_mlp = shape_of(shapes, expert_key, 2, folder)
    agree(int(text.width * fields.number("expert_width_multiplier", 0.75, low=0)), expert_width,
          "expert width (expert_width_multiplier)", fields.where, expert_key)
    sides = values.get("resize_imgs_with_padding", (512, 512))
    if not isinstance(sides, (list, tuple)) or len(sides) != 2 or not all(
            type(side) is int and 1 <= side <= 1 << 14 for side in sides):
        raise CheckpointError(
            f"{fields.where}: resize_imgs_with_padding is {sides!r}: expected [width, height]; "
            "images of any size need one size to be brought to"
        )
    chunk = fields.whole("chunk_size", 50, high=1 << 14)
    config = SmolVLAConfig(
        vision=vision, text=text, shuffle=shuffle, expert_width=expert_width, expert_mlp=expert_mlp,
        self_attention=layer_kinds(fields, layers), chunk=chunk,
        steps=fields.whole("num_steps", 10, high=1000), action=action, state=state,
        max_action=fields.whole("max_action_dim", 32), max_state=fields.whole("max_state_dim", 32),
        image_height=sides[1], image_width=sides[0], language=language,
        special_tokens=fields.flag("add_image_special_tokens", False),
        min_period=float(fields.number("min_period", 0.004, low=1e-6)),
        max_period=float(fields.number("max_period", 4.0, low=1e-6)),
        n_action_steps=fields.whole("n_action_steps", chunk, high=chunk),
    )
    try:
        config.check()
    except ValueError as error:
        raise CheckpointError(f"{fields.where}: {error}") from None
    return config
