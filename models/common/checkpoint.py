# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the loaders of all policies have in common: nothing is guessed, nothing is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .errors import CheckpointError, listed
from .fields import MOST, Fields
from .keys import Entry
from .processors import ACTION, STATE
from .statistics import Statistics
from .tokenizer import Tokenizer
from .weights import Weights

EMPTY_CAMERA = "observation.images.empty_camera_"


@dataclass(frozen=True)
class Relative:
    """Actions that are to be added to the state, but for some joints.

    :param names: of the actions; None where the checkpoint does not have them.
    :param apart: joints are absolute whose names contain one of these words.
    """

    names: tuple[str, ...] | None = None
    apart: tuple[str, ...] = ()


@dataclass
class PolicyCheckpoint:
    """What a checkpoint says, checked."""

    folder: Path
    config: Any  # sizes, as the family has them
    state: dict[str, torch.Tensor]  # by the names of the family's network, float32
    token_table: torch.Tensor  # [vocabulary, width], dtype of the file
    cameras: tuple[str, ...]  # feature keys in the network's order, without announced empty ones
    camera_names: dict[str, str]  # key -> what the robot calls it
    empty_cameras: int  # masked slots that follow where cameras are missing
    camera_shapes: dict[str, tuple[int, ...]]  # as stored; LeRobot does not enforce them
    rename_map: dict[str, str]  # robot's key -> policy's key
    state_statistics: Statistics
    action_statistics: Statistics
    tokenizer: Tokenizer
    backbone: Path | None  # folder with the backbone's config and tokenizer, if there is one
    compat: str
    unused: tuple[str, ...]  # tensors that nothing at inference reads
    files: tuple[Path, ...]  # what was read, for hashing
    aloha: str = "none"  # whose constants turn ALOHA's joints into the policy's, see `conventions`
    relative: Relative | None = None  # actions relative to the state of the observation

    @property
    def slots(self) -> int:
        """Image slots that take every camera and every announced empty one."""
        return len(self.cameras) + self.empty_cameras


def assign_stage(module: nn.Module, stage: str, state: Mapping[str, torch.Tensor]) -> None:
    """Give a stage's module, made without memory, its weights by the whole network's names."""
    start = f"{stage}."
    module.load_state_dict(
        {name.removeprefix(start): tensor for name, tensor in state.items()
         if name.startswith(start)},
        strict=True, assign=True,
    )


def with_prefix(names: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """Map names as LeRobot writes them today to those of the file (which may lack 'model.')."""
    bare = names and not any(name.startswith("model.") for name in names)
    return {f"model.{name}" if bare else name: name for name in names}


def check_names(
    wanted: Mapping[str, tuple[int, ...]], shapes: Mapping[str, tuple[int, ...]],
    unused: Callable[[str], bool], folder: Path,
) -> None:
    """Refuse missing, unknown and misshapen tensors, all named."""
    missing = [name for name in wanted if name not in shapes]
    extra = [name for name in shapes if name not in wanted and not unused(name)]
    wrong = [
        f"{name} is {shapes[name]}, expected {shape}"
        for name, shape in wanted.items() if name in shapes and shapes[name] != shape
    ]
    problems = []
    if missing:
        problems.append(f"{len(missing)} tensors are missing: {listed(missing)}")
    if extra:
        problems.append(f"{len(extra)} tensors are not known: {listed(extra)}")
    if wrong:
        problems.append(f"{len(wrong)} tensors have another shape: {listed(wrong)}")
    if problems:
        raise CheckpointError(
            f"{folder}: {'; '.join(problems)}. Expected exactly the {len(wanted)} tensors of this "
            "config.json; give the config and backbone it was trained with, or save it again"
        )


def collect(
    entries: Iterable[Entry], weights: Weights, network: Mapping[str, str], stages: Sequence[str]
) -> dict[str, torch.Tensor]:
    """Return float32 tensors by our names; float32 on disk stays a view of the mapped file.

    :param network: name by entry -> name in the file.
    """
    tensors = {}
    for entry in entries:
        if not any(target.partition(".")[0] in stages for target in entry.targets):
            continue
        tensor = weights.get(network[entry.key])
        refuse_not_finite(tensor, entry.key, weights.folder)
        tensors.update(entry.split(tensor))
    return tensors


def refuse_not_finite(tensor: torch.Tensor, name: str, folder: Path) -> None:
    if not bool(torch.isfinite(tensor).all()):
        raise CheckpointError(
            f"{folder}: {name} holds values that are not finite; the training went wrong or the "
            "file is damaged: use another checkpoint"
        )


def read_features(
    fields: Fields,
) -> tuple[tuple[str, ...], dict[str, tuple[int, ...]], int, int, int]:
    """Return cameras in order, their shapes, announced empty ones, state and action widths."""
    inputs, outputs = fields.section("input_features"), fields.section("output_features")
    images = {
        key: picture_shape(inputs, key)
        for key in inputs.values if inputs.section(key).values.get("type") == "VISUAL"
    }
    cameras = tuple(key for key in images if not key.startswith(EMPTY_CAMERA))
    if not cameras:
        raise CheckpointError(
            f"{fields.where}: no camera among input_features ({listed(inputs.values)}): expected "
            "at least one of type VISUAL"
        )
    empty = fields.whole("empty_cameras", 0, low=0, high=16)
    others = set(inputs.values) - set(images) - {STATE}
    others |= set(outputs.values) - {ACTION}
    if others:
        raise CheckpointError(
            f"{fields.where}: features {listed(others)} are not known: expected images, {STATE} "
            f"and {ACTION}"
        )
    shapes = {key: images[key] for key in cameras}
    return cameras, shapes, empty, section_width(inputs, STATE), section_width(outputs, ACTION)


def section_width(section: Fields, name: str) -> int:
    shape = section.section(name).values.get("shape")
    if not (isinstance(shape, (list, tuple)) and len(shape) == 1 and is_side(shape[0])):
        raise CheckpointError(f"{section.where}: {name} has shape {shape!r}: expected [width]")
    return shape[0]


def picture_shape(section: Fields, name: str) -> tuple[int, ...]:
    shape = section.section(name).values.get("shape", ())
    if not (isinstance(shape, (list, tuple)) and len(shape) in (0, 3) and all(map(is_side, shape))):
        raise CheckpointError(
            f"{section.where}: {name} has shape {shape!r}: expected [3, height, width]"
        )
    return tuple(shape)


def is_side(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MOST
