# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Fields of a config.json and shapes of tensors, each checked for what it may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import CheckpointError

#: More than any size in these files.
MOST = 1 << 20

Shapes = Mapping[str, tuple[int, ...]]


class Fields:
    """Fields of a JSON object with defaults, types checked; unknown ones are left alone."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where = values, where

    def number(
        self, name: str, default: float | None = None, *, low: float = -MOST, high: float = MOST
    ) -> Any:
        """Return a number from `low` to `high`."""
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CheckpointError(f"{self.where}: {name} is {value!r}: expected a number; add it")
        if not low <= value <= high:  # NaN, too
            raise CheckpointError(
                f"{self.where}: {name} is {value!r:.40}: expected {low:g} to {high:g}"
            )
        return value

    def whole(
        self, name: str, default: int | None = None, *, low: int = 1, high: int = MOST
    ) -> int:
        """Return a whole number from `low` to `high`."""
        value = self.number(name, default, low=low, high=high)
        if value != int(value):
            raise CheckpointError(f"{self.where}: {name} is {value!r}: expected a whole number")
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise CheckpointError(f"{self.where}: {name} is {value!r}: expected true or false")
        return value

    def section(self, name: str) -> Fields:
        value = self.values.get(name)
        if not isinstance(value, Mapping):
            raise CheckpointError(f"{self.where}: {name} is {value!r}: expected an object")
        return Fields(value, f"{self.where}: {name}")


def shape_of(shapes: Shapes, key: str, rank: int, folder: Path) -> tuple[int, ...]:
    shape = shapes.get(key)
    if shape is None:
        raise CheckpointError(
            f"{folder}: {key} is missing, so the sizes are not known; expected a whole policy "
            "(save the policy again, or fetch all of its files)"
        )
    if len(shape) != rank:
        raise CheckpointError(f"{folder}: {key} has shape {shape}: expected {rank} dimensions")
    return shape


def count_layers(shapes: Shapes, prefix: str) -> int:
    """Return 1 + the highest layer number under a prefix, 0 if none (holes are missing keys)."""
    pattern = re.compile(rf"{re.escape(prefix)}\.(\d+)\.")
    return max((int(match[1]) + 1 for name in shapes if (match := pattern.match(name))), default=0)


def agree(said: int, found: int, what: str, backbone: str, tensor: str) -> int:
    if said != found:
        raise CheckpointError(
            f"{what}: {backbone} says {said}, the shape of {tensor} says {found}; give the config "
            "of the backbone this checkpoint was trained with (backbone=DIR)"
        )
    return found


def read_eps(fields: Fields, name: str) -> float:
    return float(fields.number(name, 1e-6, low=1e-12, high=1e-2))
