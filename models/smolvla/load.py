# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read a SmolVLA checkpoint as LeRobot saves it, strictly: nothing is guessed, nothing is dropped.

Every tensor is used, or known to be unused, or named in the error. Statistics must be there and
usable. Joint names, order and units are not in a checkpoint (only their number), so they are not
here either: the export asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..common.cameras import Wanted, camera_names, pick_cameras, read_rename_map
from ..common.checkpoint import (
    PolicyCheckpoint, assign_stage, check_names, collect, read_features, refuse_not_finite,
    with_prefix,
)
from ..common.errors import CheckpointError, listed
from ..common.fields import Fields
from ..common.processors import ACTION, STATE, StatisticsSources
from ..common.statistics import is_old_name
from ..common.steps import POSTPROCESSOR, PREPROCESSOR, read_steps
from ..common.tokenizer import read_tokenizer
from ..common.weights import open_weights, read_json
from .config import SmolVLAConfig
from .keys import TOKENS, entries, unused
from .policy import STAGES, SmolVLA
from .prefix import END_MARKS, START_MARKS
from .sizes import DEFAULT_BACKBONE, KNOWN_BACKBONES, read_config

COMPATIBILITIES = ("new", "transformers-4.55")

SmolVLACheckpoint = PolicyCheckpoint


def load_checkpoint(
    folder: Path | str,
    *,
    backbone: Path | str | None = None,
    base: Path | str | None = None,
    statistics: Path | str | Mapping[str, Any] | None = None,
    dataset: str | None = None,
    compat: str = "new",
    cameras: Wanted = None,
    stages: Sequence[str] = STAGES,
) -> SmolVLACheckpoint:
    """Read a checkpoint folder.

    backbone: folder with the backbone's config.json and tokenizer; else the one config.json names,
        if that is a folder beside the checkpoint; else sizes of the one backbone known by name.
    base: for a LoRA folder without its own model.safetensors, the checkpoint it was trained on.
    statistics: file or mapping feature -> statistic -> values that replaces what the checkpoint
        has, or "identity" for values that are meant unnormalised.
    dataset: whose statistics to take where a checkpoint has those of several data sets.
    compat: "new", or "transformers-4.55" for the vision positions of transformers 4.55 to 4.57.
    cameras: those to have slots for, how many from the first on or which; all if not given.
    stages: whose weights to read; everything else is read and checked in any case.

    Raises CheckpointError: what was found, what was expected, what to pass or change.
    """
    folder = Path(folder)
    if compat not in COMPATIBILITIES:
        raise CheckpointError(f"compat is {compat!r}: expected one of {listed(COMPATIBILITIES)}")
    values = read_json(folder / "config.json")
    fields = Fields(values, str(folder / "config.json"))
    weights = open_weights(folder, Path(base) if base is not None else None)
    old_statistics = [name for name in weights.names if is_old_name(name)]
    network = with_prefix({n: s for n, s in weights.names.items() if n not in set(old_statistics)})

    shapes = {plain: weights.names[name] for plain, name in network.items()}
    all_cameras, camera_shapes, empty, state, action = read_features(fields)
    steps = read_steps(folder / PREPROCESSOR)
    rename_map = read_rename_map(steps)
    names = camera_names(all_cameras, rename_map)
    backbone_dir, backbone_config, backbone_name = find_backbone(fields, folder, backbone)
    tokenizer = read_tokenizer(fields, steps, backbone_dir)
    config = read_config(
        values, backbone_config, shapes, folder=folder, backbone_name=backbone_name,
        state=state, action=action, language=tokenizer.max_length,
    )
    wanted = {entry.key: entry.shape for entry in entries(config)}
    wanted[TOKENS] = (config.text.vocabulary, config.text.width)
    check_names(wanted, shapes, lambda name: unused(config, name), folder)

    tensors = collect(entries(config), weights, network, stages)
    token_table = weights.table(network[TOKENS])
    refuse_not_finite(token_table, TOKENS, weights.folder)
    if config.special_tokens:
        start, end = tokenizer.marks()
        tensors["fusion_backbone.start_marks"] = rows(token_table, start, START_MARKS)
        tensors["fusion_backbone.end_marks"] = rows(token_table, end, END_MARKS)
    sources = StatisticsSources(
        folder, fields, weights, old_statistics, statistics, dataset,
        steps, read_steps(folder / POSTPROCESSOR),
    )
    state_statistics = sources.read(STATE, "STATE", state)
    action_statistics = sources.read(ACTION, "ACTION", action)
    sources.check_asked()
    return SmolVLACheckpoint(
        folder=folder, config=config, state=tensors, token_table=token_table,
        cameras=pick_cameras(names, cameras), camera_names=names, empty_cameras=empty,
        camera_shapes=camera_shapes, rename_map=rename_map,
        state_statistics=state_statistics, action_statistics=action_statistics,
        tokenizer=tokenizer, backbone=backbone_dir, compat=compat,
        unused=tuple(sorted([n for n in shapes if unused(config, n)] + sources.unused)),
        files=tuple([folder / "config.json", *weights.files, *sources.files]),
    )


def build(checkpoint: SmolVLACheckpoint, slots: int | None = None) -> SmolVLA:
    """Return the network with its weights, for a number of image slots (all if not given)."""
    with torch.device("meta"):  # parameters come from the checkpoint; buffers ask for the CPU
        model = SmolVLA(
            checkpoint.config, checkpoint.slots if slots is None else slots,
            shifted_vision_positions=checkpoint.compat == "transformers-4.55",
        )
    model.load_state_dict(checkpoint.state, strict=True, assign=True)
    model.token_table = checkpoint.token_table
    model.requires_grad_(False)
    model.vision_encoder.gather_positions()
    return model.eval()


def build_stage(checkpoint: SmolVLACheckpoint, stage: str) -> tuple[nn.Module, SmolVLA]:
    """Return one stage with its weights, and the network it is of, whose others have none."""
    with torch.device("meta"):
        model = SmolVLA(
            checkpoint.config, checkpoint.slots,
            shifted_vision_positions=checkpoint.compat == "transformers-4.55",
        )
    module = getattr(model, stage)
    assign_stage(module, stage, checkpoint.state)
    model.requires_grad_(False)
    if stage == "vision_encoder":
        module.gather_positions()
    return module.eval(), model


def rows(table: torch.Tensor, ids: tuple[int, ...], count: int) -> torch.Tensor:
    assert len(ids) == count
    return torch.stack([table[index] for index in ids]).float()


def find_backbone(
    fields: Fields, folder: Path, given: Path | str | None
) -> tuple[Path | None, Mapping[str, Any], str]:
    """Return the backbone's folder (if any), its config, and what to call it in errors."""
    name = str(fields.values.get("vlm_model_name", DEFAULT_BACKBONE))
    # Real checkpoints name a hub repository; a relative path may lie in or beside the checkpoint.
    places = [Path(given)] if given is not None else [folder / name, folder.parent / name]
    for place in places:
        if given is not None or (place / "config.json").is_file():
            return place, read_json(place / "config.json"), str(place / "config.json")
    if name in KNOWN_BACKBONES:
        return None, KNOWN_BACKBONES[name], name
    raise CheckpointError(
        f"{fields.where} names the backbone {name!r}, which is neither a folder beside the "
        f"checkpoint nor one of those known ({listed(KNOWN_BACKBONES)}); pass backbone=DIR, a "
        "local copy of its config.json and tokenizer files"
    )
