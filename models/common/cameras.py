# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the cameras of a checkpoint are called on the robot, and which of them a bundle has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import CheckpointError, listed

IMAGES = "observation.images."
RENAMES = "policy_preprocessor.json: rename_map"

Wanted = int | Sequence[str] | None


def read_rename_map(steps: Mapping[str, Mapping[str, Any]] | None) -> dict[str, str]:
    """Return the robot's keys -> the checkpoint's, as the preprocessor renames observations."""
    step = (steps or {}).get("rename_observations_processor", {})
    return {str(k): str(v) for k, v in step.get("config", {}).get("rename_map", {}).items()}


def short_name(key: str) -> str:
    """Return a camera's name by its key: the last part of it."""
    return key.removeprefix(IMAGES).removeprefix("observation.")


def camera_names(cameras: Sequence[str], rename_map: Mapping[str, str]) -> dict[str, str]:
    """Return the robot's name of each camera by the checkpoint's key.

    LeRobot renames what the robot sends before the policy sees it, so a camera is called as its
    source is; one that nothing is renamed to keeps its own name.

    :raises CheckpointError: a picture is renamed to what is no camera, or two to the same name.
    """
    sources: dict[str, str] = {}
    for source, key in rename_map.items():
        if not key.startswith(IMAGES) and key not in cameras:
            continue  # not a picture; joints are named by the export
        if key not in cameras:
            raise CheckpointError(
                f"{RENAMES} renames {source} to {key}, which is no camera of the checkpoint "
                f"({listed(cameras)}); correct it or take the entry out"
            )
        if key in sources:
            raise CheckpointError(
                f"{RENAMES} renames both {sources[key]} and {source} to {key}: expected one source "
                "a camera; take one of them out"
            )
        sources[key] = source
    names = {key: short_name(sources.get(key, key)) for key in cameras}
    for key, name in names.items():
        others = [other for other in cameras if names[other] == name]
        if len(others) > 1:
            raise CheckpointError(
                f"{RENAMES} calls both {' and '.join(others)} {name}: expected a source of its own "
                f"for each; rename another camera to {key}, too"
            )
    return names


def pick_cameras(names: Mapping[str, str], wanted: Wanted) -> tuple[str, ...]:
    """Return the keys of those cameras that are wanted, in the network's order.

    :param names: all of them, key -> name. :param wanted: how many from the first on, or which, by
        name or key in any order; None for all.
    :raises CheckpointError: more than there are, none, or one that is not there.
    """
    keys = tuple(names)
    if wanted is None:
        return keys
    listing = f"the checkpoint has {', '.join(names.values())}"
    if isinstance(wanted, int):
        if not 1 <= wanted <= len(keys):
            raise CheckpointError(
                f"cameras={wanted}: {listing}; expected 1 to {len(keys)}, or some of their names"
            )
        return keys[:wanted]
    unknown = [name for name in wanted if name not in names and name not in names.values()]
    if unknown or not wanted:
        raise CheckpointError(
            f"cameras={','.join(wanted)}: {listing}; expected some of these names, or how many "
            "from the first on"
        )
    return tuple(key for key in keys if key in wanted or names[key] in wanted)
