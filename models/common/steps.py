# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of a checkpoint's processor files: each is done here, too, or changes nothing.

A step that is left out unseen gives actions that are wrong by whatever it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import CheckpointError, listed
from .weights import read_json

PREPROCESSOR, POSTPROCESSOR = "policy_preprocessor.json", "policy_postprocessor.json"
RENAME, TOKENIZE = "rename_observations_processor", "tokenizer_processor"
NORMALIZE, UNNORMALIZE = "normalizer_processor", "unnormalizer_processor"
BATCH, DEVICE = "to_batch_processor", "device_processor"
NEWLINE = "smolvla_new_line_processor"
PI0_NEWLINE = "pi0_new_line_processor"
PI05_PROMPT = "pi05_prepare_state_tokenizer_processor_step"
RELATIVE, ABSOLUTE = "relative_actions_processor", "absolute_actions_processor"

#: Those that each file may have, beside what makes a family's prompt.
KNOWN = {
    PREPROCESSOR: (RENAME, BATCH, TOKENIZE, DEVICE, NORMALIZE, RELATIVE),
    POSTPROCESSOR: (UNNORMALIZE, DEVICE, ABSOLUTE),
}
#: A step is named in a registry, or (also valid) by its class.
CLASSES = {
    "RenameObservationsProcessorStep": RENAME, "TokenizerProcessorStep": TOKENIZE,
    "NormalizerProcessorStep": NORMALIZE, "UnnormalizerProcessorStep": UNNORMALIZE,
    "SmolVLANewLineProcessor": NEWLINE, "Pi0NewLineProcessor": PI0_NEWLINE,
    "Pi05PrepareStateTokenizerProcessorStep": PI05_PROMPT, "AddBatchDimensionProcessorStep": BATCH,
    "DeviceProcessorStep": DEVICE, "RelativeActionsProcessorStep": RELATIVE,
    "AbsoluteActionsProcessorStep": ABSOLUTE,
}
HOME = "lerobot."
#: Once or twice is the same.
REPEATABLE = (BATCH, DEVICE, NEWLINE, PI0_NEWLINE)
#: Kinds of features by the name of what normalises them.
NORMALISED = {NORMALIZE: ("observation.state", "STATE"), UNNORMALIZE: ("action", "ACTION")}

Steps = Mapping[str, Mapping[str, Any]]


def read_steps(
    path: Path, prompt: str = NEWLINE, *, relative: bool = False
) -> dict[str, dict[str, Any]] | None:
    """Return a processor's steps by name, or None where the release wrote no such file.

    :param prompt: the step that makes the family's prompt.
    :param relative: whether actions relative to the state are taken.
    :raises CheckpointError: a step is not known, stands twice, or does what is not done here.
    """
    if not path.is_file():
        return None
    steps = read_json(path).get("steps")
    if not isinstance(steps, list):
        raise CheckpointError(f"{path}: steps is {steps!r}: expected a list")
    found: dict[str, dict[str, Any]] = {}
    for index, step in enumerate(steps):
        where = f"{path}: step {index}"
        if not isinstance(step, Mapping):
            raise CheckpointError(f"{where} is {step!r}: expected an object")
        name = _name(step, where, (*KNOWN[path.name], prompt))
        config = step.get("config", {})
        if not isinstance(config, Mapping):
            raise CheckpointError(f"{where} ({name}): config is {config!r}: expected an object")
        if name in found and name not in REPEATABLE:
            raise CheckpointError(
                f"{where}: {name} is there twice: expected one; what two of them do is not done "
                "here: train and save with one"
            )
        _check_config(name, config, f"{where} ({name})", relative)
        found[name] = {**step, "config": dict(config)}
    return found


def _name(step: Mapping[str, Any], where: str, known: tuple[str, ...]) -> str:
    name, kind = step.get("registry_name"), str(step.get("class", ""))
    if name is None and kind.startswith(HOME):
        name = CLASSES.get(kind.rpartition(".")[2])
    if name not in known:
        raise CheckpointError(
            f"{where} is {step.get('registry_name') or kind or step!r}: expected one of "
            f"{listed(known)}; what it does is not done here, so actions would be others than in "
            "training: train and save without it, or, if it changes no number, take it out of the "
            "file"
        )
    return str(name)


def _check_config(
    name: str, config: Mapping[str, Any], where: str, relative: bool
) -> None:
    if name in (RELATIVE, ABSOLUTE) and relative:
        if type(config.get("enabled", False)) is not bool:
            raise CheckpointError(
                f"{where}: enabled is {config['enabled']!r}: expected true or false"
            )
    elif name in (RELATIVE, ABSOLUTE) and config.get("enabled") is not False:
        raise CheckpointError(
            f"{where}: enabled is {config.get('enabled')!r}: expected false; actions relative to "
            "the state are not turned into absolute ones here: train with absolute actions"
        )
    if name == DEVICE and config.get("float_dtype") not in (None, "float32"):
        raise CheckpointError(
            f"{where}: float_dtype is {config['float_dtype']!r}: expected null; observations and "
            "actions stay float32 here: set it to null to take the checkpoint so"
        )
    if name == RENAME:
        renames = config.get("rename_map", {})
        plain = isinstance(renames, Mapping) and all(
            isinstance(text, str) for pair in renames.items() for text in pair)
        if not plain:
            raise CheckpointError(f"{where}: rename_map is {renames!r}: expected names to names")
    if name in NORMALISED:
        _check_normaliser(*NORMALISED[name], config, where)


def _check_normaliser(
    feature: str, kind: str, config: Mapping[str, Any], where: str
) -> None:
    """Refuse a normaliser that passes its feature over, or is not written as one."""
    modes = config.get("norm_map")
    if modes is not None and not (isinstance(modes, Mapping) and all(
            isinstance(text, str) for pair in modes.items() for text in pair)):
        raise CheckpointError(f"{where}: norm_map is {modes!r}: expected kinds and their modes")
    eps = config.get("eps", 1e-8)
    if isinstance(eps, bool) or not isinstance(eps, (int, float)) or not 0 <= eps <= 1e-3:
        raise CheckpointError(f"{where}: eps is {eps!r}: expected a number from 0 to 1e-3")
    instead = (
        f"LeRobot would leave {feature} as it is: name it there, or pass statistics=\"identity\" "
        f"and take {where.rpartition('(')[2].rstrip(')')} out if it is meant so"
    )
    only = config.get("normalize_observation_keys")
    if kind == "STATE" and only is not None and (
            not isinstance(only, list) or feature not in only):
        raise CheckpointError(
            f"{where}: normalize_observation_keys is {only!r}, without {feature}: {instead}"
        )
    features = config.get("features")
    if features is None:
        return
    entry = features.get(feature) if isinstance(features, Mapping) else None
    found = entry.get("type") if isinstance(entry, Mapping) else entry
    if found != kind:
        raise CheckpointError(
            f"{where}: features has {feature} of type {found!r}: expected {kind}; {instead}"
        )
