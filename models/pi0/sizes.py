# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Work out sizes from config.json and the shapes of the tensors.

The checkpoint's config names two variants and holds no sizes; shapes give all of them but the
number of heads of the vision tower.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..common.config import TextConfig, VisionConfig
from ..common.errors import CheckpointError
from ..common.fields import Fields, Shapes, agree, count_layers, shape_of
from ..common.weights import read_json
from .config import Pi0Config
from .keys import EXPERT, TEXT, TOKENS, TOKENS_TIED, VISION

#: Both are PaliGemma's: Gemma's norms and SigLIP's.
EPS = 1e-6
#: Heads of the vision tower by its width.
VISION_HEADS = {1152: 16}
VARIANTS = {"paligemma_variant": "gemma_2b", "action_expert_variant": "gemma_300m"}


def heads_of_vision(width: int, given: int | None, backbone: Path | None, folder: Path) -> int:
    """Return the heads of the vision tower, which no shape shows.

    :param given: what the user says. :param backbone: folder with PaliGemma's config.json.
    """
    if given is not None:
        return given
    where = None if backbone is None else backbone / "config.json"
    if where is not None and where.is_file():
        section = read_json(where).get("vision_config")
        if isinstance(section, Mapping) and "num_attention_heads" in section:
            return Fields(section, f"{where}: vision_config").whole("num_attention_heads")
    if width in VISION_HEADS:
        return VISION_HEADS[width]
    raise CheckpointError(
        f"{folder}: the vision tower is {width} wide, and how many heads that has is known for "
        f"{', '.join(map(str, VISION_HEADS))} only; pass vision_heads=N, or backbone=DIR with a "
        "config.json that says vision_config: num_attention_heads"
    )


def read_vision(shapes: Shapes, heads: int, folder: Path) -> VisionConfig:
    width, _, patch, _ = shape_of(shapes, f"{VISION}.embeddings.patch_embedding.weight", 4, folder)
    table, _ = shape_of(shapes, f"{VISION}.embeddings.position_embedding.weight", 2, folder)
    mlp, _ = shape_of(shapes, f"{VISION}.encoder.layers.0.mlp.fc1.weight", 2, folder)
    side = round(table**0.5)
    if side * side != table:
        raise CheckpointError(f"{folder}: a vision table of {table} positions is not square")
    return VisionConfig(
        width=width, mlp=mlp, layers=count_layers(shapes, f"{VISION}.encoder.layers"), heads=heads,
        patch=patch, table_side=side, eps=EPS,
    )


def read_text(shapes: Shapes, folder: Path) -> TextConfig:
    tokens = TOKENS if TOKENS in shapes else TOKENS_TIED
    vocabulary, width = shape_of(shapes, tokens, 2, folder)
    mlp, _ = shape_of(shapes, f"{TEXT}.layers.0.mlp.gate_proj.weight", 2, folder)
    queries, keys = (
        shape_of(shapes, f"{TEXT}.layers.0.self_attn.{name}_proj.weight", 2, folder)[0]
        for name in "qk"
    )
    # There is one key head, so its width is the head's.
    if queries % keys:
        raise CheckpointError(
            f"{folder}: {queries} query rows do not divide by {keys} key rows, the width of the "
            "one key head; expected a Gemma with one key head"
        )
    return TextConfig(
        width=width, mlp=mlp, layers=count_layers(shapes, f"{TEXT}.layers"), heads=queries // keys,
        kv_heads=1, head_dim=keys, vocabulary=vocabulary, eps=EPS,
    )


def refuse_unsupported(fields: Fields) -> None:
    """Refuse options that change what the network is given or means."""
    for name, known in VARIANTS.items():
        said = fields.values.get(name, known)
        if said != known:
            raise CheckpointError(
                f"{fields.where}: {name} is {said!r}: expected {known!r}, the one that is used"
            )
    if fields.whole("n_obs_steps", 1) != 1:
        raise CheckpointError(
            f"{fields.where}: n_obs_steps is {fields.whole('n_obs_steps', 1)}: expected 1; the "
            "network sees one observation"
        )
    if fields.flag("use_delta_joint_actions_aloha", False):
        raise CheckpointError(
            f"{fields.where}: use_delta_joint_actions_aloha is true: expected false; LeRobot itself "
            "does not run it. If actions are relative to the state, pass relative=..."
        )


def image_sides(fields: Fields) -> tuple[int, int]:
    """Return (height, width) of the pictures that the vision tower takes."""
    sides = fields.values.get("image_resolution", (224, 224))
    if not isinstance(sides, (list, tuple)) or len(sides) != 2 or not all(
            type(side) is int and 1 <= side <= 1 << 14 for side in sides):
        raise CheckpointError(
            f"{fields.where}: image_resolution is {sides!r}: expected [height, width]"
        )
    return sides[0], sides[1]


def read_config(
    values: Mapping[str, Any], shapes: Shapes, *, folder: Path, adaptive: bool, heads: int,
    state: int, action: int, language: int,
) -> Pi0Config:
    """Return the sizes, or say which two sources disagree."""
    fields = Fields(values, str(folder / "config.json"))
    refuse_unsupported(fields)
    text = read_text(shapes, folder)
    down = f"{EXPERT}.layers.0.mlp.down_proj.weight"
    expert_width, expert_mlp = shape_of(shapes, down, 2, folder)
    agree(text.layers, count_layers(shapes, f"{EXPERT}.layers"), "layers", "the backbone",
          "the expert's last")
    height, width = image_sides(fields)
    chunk = fields.whole("chunk_size", 50, high=1 << 14)
    max_action = shape_of(shapes, "model.action_in_proj.weight", 2, folder)[1]
    agree(fields.whole("max_action_dim", max_action), max_action, "max_action_dim", fields.where,
          "model.action_in_proj.weight")
    max_state = fields.whole("max_state_dim", 32)
    if not adaptive:
        found = shape_of(shapes, "model.state_proj.weight", 2, folder)[1]
        agree(max_state, found, "max_state_dim", fields.where, "model.state_proj.weight")
    config = Pi0Config(
        vision=read_vision(shapes, heads, folder), text=text, expert_width=expert_width,
        expert_mlp=expert_mlp, adaptive=adaptive, chunk=chunk,
        steps=fields.whole("num_inference_steps", 10, high=1000), action=action, state=state,
        max_action=max_action, max_state=max_state, image_height=height, image_width=width,
        language=language,
        min_period=float(fields.number("min_period", 0.004, low=1e-6)),
        max_period=float(fields.number("max_period", 4.0, low=1e-6)),
        n_action_steps=fields.whole("n_action_steps", chunk, high=chunk),
    )
    try:
        config.check()
    except ValueError as error:
        raise CheckpointError(f"{fields.where}: {error}") from None
    return config
