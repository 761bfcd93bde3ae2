# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of networks that are exported, and how a folder tells which it holds.

Without PyTorch until a family's class is asked for, so that mistakes are told at once.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..common.errors import CheckpointError


@dataclass(frozen=True)
class Family:
    """A kind of network.

    :param module, name: where its export class is, relative to this package: `name(folder,
        options)` with stages, load, names, examples, golden, write_files, sources, sections, and
        widths (those of actions and states) if it moves joints.
    :param moves: whether it moves joints, which then have to be named.
    :param recipes: those that it may be exported by.
    """

    module: str
    name: str
    moves: bool = True
    recipes: tuple[str, ...] = ("fp32", "int8")


#: By the `type` in a checkpoint's config.json; Piper's voices have none, see `family_of`.
FAMILIES: Mapping[str, Family] = {
    "smolvla": Family(".smolvla", "SmolVLAExport"),
    "pi0": Family(".pi0", "Pi0Export", recipes=("fp32", "int8", "int4")),
    "pi05": Family(".pi0", "Pi0Export", recipes=("fp32", "int8", "int4")),
    "piper": Family(".piper", "PiperExport", moves=False, recipes=("fp32",)),
    "qwen3_tts": Family(".qwen3_tts", "export_voice", moves=False,
                        recipes=("fp32", "int8", "int4")),
}
_PIPER, QWEN = "piper", "qwen3_tts"
#: What openpi's config.json has in the place of a type; π0.5's tensors have other names.
OPENPI = {"action_dim", "action_horizon"}


def family_class(family: str) -> type:
    """Return the export class of a family."""
    entry = FAMILIES[family]
    found: type = getattr(importlib.import_module(entry.module, __package__), entry.name)
    return found


def family_of(folder: Path) -> str:
    """Return the kind of network a checkpoint holds.

    :raises CheckpointError: one that is not exported, or the folder is none.
    """
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder: expected one as save_pretrained writes it")
    if any(folder.glob("*.onnx.json")):
        return _PIPER
    content = _read(folder / "config.json")
    if content.get("model_type") == QWEN:
        return QWEN
    family = content.get("type", "pi0" if OPENPI <= set(content) else None)
    if not isinstance(family, str) or family not in FAMILIES or family in (_PIPER, QWEN):
        known = ", ".join(name for name in FAMILIES if name not in (_PIPER, QWEN))
        raise CheckpointError(
            f"{folder / 'config.json'}: type is {family!r}: expected one of {known}; or a "
            "Qwen3-TTS (model_type qwen3_tts), or a folder with a Piper voice, NAME.onnx and "
            "NAME.onnx.json"
        )
    return family


def needs_joints(folder: Path) -> bool:
    """Return whether an export of this folder needs joints; True if it is not known what it is."""
    try:
        return FAMILIES[family_of(folder)].moves
    except CheckpointError:
        return True


def _read(path: Path) -> dict:
    # As models.common.weights.read_json, whose module needs PyTorch.
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(
            f"{path} does not exist; expected a folder as save_pretrained writes it"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: expected a JSON file; reading it gave: {error}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value
