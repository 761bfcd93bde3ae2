# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read a π0 or π0.5 checkpoint, strictly: LeRobot's, in any of its layouts, or openpi's folder.

LeRobot's own loader warns where names or shapes are wrong and goes on with random weights. Here
every tensor is used, or known to be unused, or named in the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..common import statistics as stats
from ..common.cameras import Wanted, camera_names, pick_cameras, read_rename_map
from ..common.checkpoint import (
    PolicyCheckpoint, Relative, assign_stage, check_names, collect, read_features,
    refuse_not_finite,
)
from ..common.errors import CheckpointError, listed
from ..common.fields import Fields
from ..common.processors import ACTION, MODES, STATE, StatisticsSources
from ..common.statistics import Statistics, is_old_name
from ..common.steps import (
    ABSOLUTE, PI0_NEWLINE, PI05_PROMPT, POSTPROCESSOR, PREPROCESSOR, RELATIVE, read_steps,
)
from ..common.tokenizer import PromptDefaults, Tokenizer, read_tokenizer
from ..common.weights import Weights, open_weights, read_json
from .keys import ADAPTIVE, TOKENS, TOKENS_TIED, canonical, entries, is_adaptive, unused
from .openpi import OpenpiStatistics, as_lerobot, is_openpi
from .policy import STAGES, Pi0
from .sizes import heads_of_vision, read_config

#: "lerobot-0.4": pictures padded with -3, and π0.5's prompt with the state padded to 32 values.
COMPATIBILITIES = ("new", "lerobot-0.4")
ALOHA = ("none", "openpi", "lerobot")
TOKENIZER = "google/paligemma-3b-pt-224"
QUANTILE_MODES = {"VISUAL": "IDENTITY", "STATE": "QUANTILES", "ACTION": "QUANTILES"}


def load_checkpoint(
    folder: Path | str,
    *,
    backbone: Path | str | None = None,
    base: Path | str | None = None,
    statistics: Path | str | Mapping[str, Any] | None = None,
    dataset: str | None = None,
    compat: str = "new",
    cameras: Wanted = None,
    aloha: str | None = None,
    relative: str | None = None,
    vision_heads: int | None = None,
    stages: Sequence[str] = STAGES,
) -> PolicyCheckpoint:
    """Read a checkpoint folder.

    backbone: folder with PaliGemma's tokenizer; else the one that the checkpoint names, if that is
        a folder beside it.
    base, statistics, cameras, stages: see `models.smolvla.load`. dataset: of openpi's folders, the
        asset whose statistics are meant.
    compat: "new" (LeRobot from 0.5 on, openpi), or "lerobot-0.4".
    aloha: "openpi" or "lerobot" for a policy trained with adapt_to_pi_aloha and that one's constants
        of the gripper, "none", or None: what config.json says.
    relative: "all", "except:WORD,..." (names of joints that stay absolute), "none", or None: what
        the processors say.
    vision_heads: of the vision tower, where neither its width nor backbone/config.json tells.

    Raises CheckpointError: what was found, what was expected, what to pass or change.
    """
    folder = Path(folder)
    if compat not in COMPATIBILITIES:
        raise CheckpointError(f"compat is {compat!r}: expected one of {listed(COMPATIBILITIES)}")
    if aloha is not None and aloha not in ALOHA:
        raise CheckpointError(f"aloha is {aloha!r}: expected one of {listed(ALOHA)}")
    values = read_json(folder / "config.json")
    weights = open_weights(folder, Path(base) if base is not None else None)
    old_statistics = [name for name in weights.names if is_old_name(name)]
    names_in_file = [name for name in weights.names if name not in set(old_statistics)]
    openpi = is_openpi(values)
    adaptive = is_adaptive(names_in_file) if openpi else values.get("type") == "pi05"
    assets = None
    if openpi:
        assets = _openpi_statistics(folder, statistics, dataset)
        values = as_lerobot(values, adaptive=adaptive, state=assets.width(STATE),
                            action=assets.width(ACTION))
    fields = Fields(values, str(folder / "config.json"))
    network = canonical(names_in_file, adaptive=adaptive)
    shapes = {plain: weights.names[name] for plain, name in network.items()}
    if adaptive != (ADAPTIVE in shapes):
        raise CheckpointError(
            f"{fields.where}: type is {values.get('type')!r}, and the tensors are those of "
            f"{'π0.5' if ADAPTIVE in shapes else 'π0'} ({ADAPTIVE} is "
            f"{'there' if ADAPTIVE in shapes else 'missing'}): give the config it was trained with"
        )

    all_cameras, camera_shapes, empty, state, action = read_features(fields)
    prompt_step = PI05_PROMPT if adaptive else PI0_NEWLINE
    steps = read_steps(folder / PREPROCESSOR, prompt_step, relative=True)
    post = read_steps(folder / POSTPROCESSOR, relative=True)
    rename_map = read_rename_map(steps)
    names = camera_names(all_cameras, rename_map)
    tokenizer = _tokenizer(fields, steps, folder, backbone, adaptive)
    config = read_config(
        values, shapes, folder=folder, adaptive=adaptive, state=state, action=action,
        language=tokenizer.max_length, heads=heads_of_vision(
            _vision_width(shapes), vision_heads, Path(backbone) if backbone is not None else tokenizer.folder, folder),
    )
    wanted = {entry.key: entry.shape for entry in entries(config)}
    check_names(wanted, shapes, lambda name: unused(config, name), folder)
    tensors = collect(entries(config), weights, network, stages)
    token_table = _token_table(weights, network, shapes, folder)
    state_statistics, action_statistics, files, unused_names = _statistics(
        folder, fields, weights, old_statistics, statistics, dataset, steps, post, assets,
        adaptive, state, action,
    )
    return PolicyCheckpoint(
        folder=folder, config=config, state=tensors, token_table=token_table,
        cameras=pick_cameras(names, cameras), camera_names=names, empty_cameras=empty,
        camera_shapes=camera_shapes, rename_map=rename_map,
        state_statistics=state_statistics, action_statistics=action_statistics,
        tokenizer=tokenizer, backbone=tokenizer.folder, compat=compat,
        unused=tuple(sorted([n for n in shapes if unused(config, n)] + unused_names)),
        files=tuple([folder / "config.json", *weights.files, *files]),
        aloha=_aloha(fields, aloha, state, action),
        relative=_relative(fields, relative, steps, post, folder),
    )


def build(checkpoint: PolicyCheckpoint, slots: int | None = None) -> Pi0:
    """Return the network with its weights, for a number of image slots (all if not given)."""
    with torch.device("meta"):  # parameters come from the checkpoint; buffers ask for the CPU
        model = Pi0(checkpoint.config, checkpoint.slots if slots is None else slots)
    model.load_state_dict(checkpoint.state, strict=True, assign=True)
    model.token_table = checkpoint.token_table
    model.requires_grad_(False)
    return model.eval()


def build_stage(checkpoint: PolicyCheckpoint, stage: str) -> tuple[nn.Module, Pi0]:
    """Return one stage with its weights, and the network it is of, whose others have none."""
    with torch.device("meta"):
        model = Pi0(checkpoint.config, checkpoint.slots)
    module = getattr(model, stage)
    assign_stage(module, stage, checkpoint.state)
    model.requires_grad_(False)
    return module.eval(), model


def _vision_width(shapes: Mapping[str, tuple[int, ...]]) -> int:
    return next((shape[0] for name, shape in shapes.items()
                 if name.endswith("embeddings.patch_embedding.bias") and len(shape) == 1), 0)


def _tokenizer(
    fields: Fields, steps: Mapping[str, Mapping[str, Any]] | None, folder: Path,
    given: Path | str | None, adaptive: bool,
) -> Tokenizer:
    """Read the prompt's rules; real checkpoints name the tokenizer by a hub's name."""
    name = (steps or {}).get("tokenizer_processor", {}).get("config", {}).get("tokenizer_name")
    name = str(name or TOKENIZER)
    places = [Path(given)] if given is not None else [folder / name, folder.parent / name, folder]
    place = next((p for p in places if (p / "tokenizer.json").is_file()), None)
    if given is not None and place is None:
        raise CheckpointError(
            f"{given} has no tokenizer.json: expected a local copy of the files of {name!r}"
        )
    defaults = PromptDefaults(None if adaptive else PI0_NEWLINE, 200 if adaptive else 48,
                              "max_length", TOKENIZER)
    return read_tokenizer(fields, steps, place, defaults)


def _token_table(
    weights: Weights, network: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]],
    folder: Path,
) -> torch.Tensor:
    """Return the token table; where it is there twice, both must be the same."""
    places = [name for name in (TOKENS, TOKENS_TIED) if name in network]
    if not places:
        raise CheckpointError(
            f"{folder}: neither {TOKENS} nor {TOKENS_TIED} is there, which are the same table: "
            "expected one of them; save the policy again"
        )
    table = weights.table(network[places[0]])
    refuse_not_finite(table, places[0], folder)
    if len(places) == 2:
        other = weights.table(network[places[1]])
        if shapes[places[0]] != shapes[places[1]] or not torch.equal(table, other):
            raise CheckpointError(
                f"{folder}: {TOKENS} and {TOKENS_TIED} differ, which are one table in training: "
                "which of them is meant is not said; remove one, or save the policy again"
            )
    return table


def _openpi_statistics(
    folder: Path, given: Path | str | Mapping[str, Any] | None, dataset: str | None
) -> Any:
    """Return the statistics of an openpi folder, or those that are given instead."""
    if given is None:
        return OpenpiStatistics(folder, dataset)
    if isinstance(given, str) and given == "identity":
        raise CheckpointError(
            f"{folder}: nothing but statistics says how many joints an openpi folder's policy has, "
            "and statistics=\"identity\" has none; pass statistics=FILE"
        )
    made = stats.read_given(given, (STATE, ACTION))
    missing = [feature for feature in (STATE, ACTION) if feature not in made]
    if missing:
        raise CheckpointError(f"{given} has no statistics of {listed(missing)}: expected both")
    return _Given(made)


class _Given:
    """Statistics that are given for an openpi folder."""

    def __init__(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        self.values = values

    def width(self, feature: str) -> int:
        return max(values.size for values in self.values[feature].values())

    def read(self, feature: str, kind: str, adaptive: bool) -> Statistics:
        mode = "QUANTILES" if adaptive else "MEAN_STD"
        return stats.checked(feature, mode, self.values[feature], self.width(feature), 1e-8,
                             "the statistics given", list(self.values))


def _statistics(
    folder: Path, fields: Fields, weights: Weights, old: list[str], given: Any,
    dataset: str | None, steps: Any, post: Any, assets: Any, adaptive: bool, state: int,
    action: int,
) -> tuple[Statistics, Statistics, list[Path], list[str]]:
    """Return the state's and the actions' statistics, files read, and tensors not used."""
    if assets is not None:
        both = assets.read(STATE, "STATE", adaptive), assets.read(ACTION, "ACTION", adaptive)
        path = getattr(assets, "path", None)
        return *both, [path] if path is not None else [], old
    sources = StatisticsSources(
        folder, fields, weights, old, given, dataset, steps, post,
        QUANTILE_MODES if adaptive else MODES,
    )
    both = sources.read(STATE, "STATE", state), sources.read(ACTION, "ACTION", action)
    sources.check_asked()
    return *both, sources.files, sources.unused


def _aloha(fields: Fields, given: str | None, state: int, action: int) -> str:
    """Return whose constants turn ALOHA's joints into the policy's."""
    found = given or ("lerobot" if fields.flag("adapt_to_pi_aloha", False) else "none")
    if found != "none" and (state, action) != (14, 14):
        raise CheckpointError(
            f"{fields.where}: a state of {state} and actions of {action} values, to be adapted as "
            "ALOHA's: expected 14 of each, two arms of six joints and a gripper; pass aloha=none"
        )
    return found


def _relative(
    fields: Fields, given: str | None, steps: Any, post: Any, folder: Path
) -> Relative | None:
    """Return which actions are relative to the state, by what is given, else by the processors."""
    if given is not None:
        return parse_relative(given)
    step = (steps or {}).get(RELATIVE, {}).get("config", {})
    back = (post or {}).get(ABSOLUTE, {}).get("config", {})
    enabled = bool(step.get("enabled", False))
    said = fields.flag("use_relative_actions", False) if steps is None else enabled
    if enabled != bool(back.get("enabled", False)):
        raise CheckpointError(
            f"{folder}: {RELATIVE} has enabled {enabled} and {ABSOLUTE} {not enabled}: expected "
            "the same; correct the one that training did not have"
        )
    if not said:
        return None
    names, apart = (
        step.get("action_names", fields.values.get("action_feature_names")),
        step.get("exclude_joints", fields.values.get("relative_exclude_joints")) or [],
    )
    for what, value in (("action_names", names), ("exclude_joints", apart)):
        if value is not None and not (
                isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise CheckpointError(f"{folder}: {RELATIVE}: {what} is {value!r}: expected names")
    if names is None:
        apart = []  # LeRobot knows no names then, and makes all of them relative
    return Relative(None if names is None else tuple(names), tuple(apart))


def parse_relative(text: str) -> Relative | None:
    """Read "all", "none" or "except:WORD,WORD".

    :raises CheckpointError: it is none of these.
    """
    kind, _, words = text.partition(":")
    apart = tuple(word.strip().lower() for word in words.split(",") if word.strip())
    if kind == "none" and not words:
        return None
    if kind == "all" and not words:
        return Relative()
    if kind == "except" and apart:
        return Relative(None, apart)
    raise CheckpointError(
        f"relative is {text!r}: expected all, none, or except:WORD,... with words of the names of "
        "joints whose actions are absolute"
    )
