# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which of a checkpoint's statistics apply to which feature."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import statistics as stats
from .errors import CheckpointError
from .fields import Fields
from .statistics import Statistics
from .weights import Weights

STATE, ACTION = "observation.state", "action"
#: What a config.json that says nothing means.
MODES = {"VISUAL": "IDENTITY", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"}


def plain(weights: Weights, name: str) -> np.ndarray:
    """Return a statistic as float32; counts are whole numbers on disk."""
    return weights.raw(name).float().numpy()


class StatisticsSources:
    """Where a checkpoint's statistics may lie, in order: given, processor files, old tensors."""

    def __init__(
        self, folder: Path, fields: Fields, weights: Weights, old: list[str],
        given: Path | str | Mapping[str, Any] | None, dataset: str | None,
        pre: Mapping[str, Mapping[str, Any]] | None, post: Mapping[str, Mapping[str, Any]] | None,
        modes: Mapping[str, str] = MODES,
    ) -> None:
        self.folder, self.weights, self.dataset = folder, weights, dataset
        self.files: list[Path] = []
        self.unused: list[str] = []
        self.identity = isinstance(given, str) and given == "identity"
        self.given: stats.Arrays = {}
        if given is not None and not self.identity:
            self.given = stats.read_given(given, (STATE, ACTION))
        if "normalization_mapping" in fields.values:
            modes = fields.section("normalization_mapping").values
        self.sides = {
            STATE: self._side(pre, "normalizer_processor", modes),
            ACTION: self._side(post, "unnormalizer_processor", modes),
        }
        self.old: dict[str, dict[str, str]] = {}
        if old:
            sides = {
                STATE: ("normalize_inputs",), ACTION: ("unnormalize_outputs", "normalize_targets")
            }
            self.old, self.unused = stats.from_old_names(old, sides, dataset)
        #: Whether the data set that was asked for decided anything.
        self.asked = dataset is None or bool(old)

    def _side(
        self, steps: Mapping[str, Mapping[str, Any]] | None, name: str, modes: Mapping[str, str]
    ) -> tuple[Mapping[str, str], float, stats.Arrays, str]:
        """Return modes, eps, stored statistics and a name for errors of one processor."""
        step = (steps or {}).get(name)
        if step is None:
            return modes, 1e-8, {}, f"{self.folder}"
        config = step.get("config", {})
        stored: stats.Arrays = {}
        source = f"{self.folder}: {name}"
        if step.get("state_file"):
            path = self.folder / Path(str(step["state_file"])).name
            if not path.is_file():
                raise CheckpointError(
                    f"{path} does not exist, but the {name} names it as its state; fetch it, too"
                )
            part = Weights(self.folder, path.name.removesuffix(".safetensors"))
            stored = stats.group({key: plain(part, key) for key in part.names})
            self.files.append(path)
            source = str(path)
        return config.get("norm_map") or modes, float(config.get("eps", 1e-8)), stored, source

    def check_asked(self) -> None:
        """After reading, refuse a data set that was asked for and plays no part."""
        if not self.asked:
            raise CheckpointError(
                f"dataset={self.dataset}: {self.folder} has its statistics under no data set's "
                "name, so there is nothing to choose; leave it out"
            )

    def read(self, feature: str, kind: str, width: int) -> Statistics:
        """Return the statistics of a feature, usable, or say why there are none."""
        modes, eps, stored, source = self.sides[feature]
        if modes.get("VISUAL", "IDENTITY") != "IDENTITY":
            raise CheckpointError(
                f"{source}: images are normalised by {modes['VISUAL']}: expected IDENTITY, since "
                "the vision tower takes [-1, 1]; train without it"
            )
        if not self.identity and kind not in modes:
            raise CheckpointError(
                f"{source}: the normalisation modes are {dict(modes)}: expected one for {kind}, "
                "too; add it, or pass statistics=\"identity\" if values are meant unnormalised"
            )
        mode = "IDENTITY" if self.identity else str(modes[kind])
        values: Mapping[str, np.ndarray] = stored.get(feature, {})
        present = list(stored)
        old = {k: plain(self.weights, n) for k, n in self.old.get(feature, {}).items()}
        if values and feature not in self.given:
            stats.refuse_contradiction(
                feature, values, source, old, str(self.folder / "model.safetensors")
            )
        if not values and self.old:
            source, values = str(self.folder / "model.safetensors"), old
            present = [name for group in self.old.values() for name in group.values()]
        if not values:
            values = stats.pick_inert(stored, feature, self.dataset)
            self.asked = self.asked or bool(values)
        if feature in self.given:
            source = "the statistics given"
            values, present = self.given[feature], list(self.given)
        return stats.checked(feature, mode, values, width, eps, source, present)
