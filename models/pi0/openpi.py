# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""openpi's own folders: a config.json of five fields, statistics under assets/, nothing else.

What the training configuration held is not in them (cameras, ALOHA's adaptation, relative actions):
cameras are openpi's three, and the rest is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..common import statistics as stats
from ..common.errors import CheckpointError, listed
from ..common.processors import ACTION, STATE
from ..common.statistics import Statistics
from ..common.weights import read_json

#: openpi's names of the pictures that the network takes, in order.
CAMERAS = ("base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb")
#: openpi adds it to spreads and ranges in both directions.
EPS = 1e-6
NAMES = {STATE: "state", ACTION: "actions"}


def is_openpi(values: Mapping[str, Any]) -> bool:
    """Whether a config.json is openpi's."""
    return "type" not in values and {"action_dim", "action_horizon"} <= set(values)


def as_lerobot(
    values: Mapping[str, Any], *, adaptive: bool, state: int, action: int
) -> dict[str, Any]:
    """Return the config.json that LeRobot would have written for the same policy."""
    picture = {"type": "VISUAL", "shape": [3, 224, 224]}
    mode = "QUANTILES" if adaptive else "MEAN_STD"
    return {
        **values,
        "type": "pi05" if adaptive else "pi0",
        "input_features": {
            **{f"observation.images.{name}": picture for name in CAMERAS},
            STATE: {"type": "STATE", "shape": [state]},
        },
        "output_features": {ACTION: {"type": "ACTION", "shape": [action]}},
        "chunk_size": values["action_horizon"], "n_action_steps": values["action_horizon"],
        "max_action_dim": values["action_dim"], "max_state_dim": values["action_dim"],
        "normalization_mapping": {"VISUAL": "IDENTITY", "STATE": mode, "ACTION": mode},
    }


class OpenpiStatistics:
    """Statistics of a folder's assets: {norm_stats: {state, actions: {mean, std, q01, q99}}}."""

    def __init__(self, folder: Path, dataset: str | None) -> None:
        """:raises CheckpointError: there are none, or several and none was chosen."""
        assets = folder / "assets"
        found = {path.parent.relative_to(assets).as_posix(): path
                 for path in sorted(assets.rglob("norm_stats.json"))}
        if not found:
            raise CheckpointError(
                f"{folder} has no assets/ID/norm_stats.json: expected the statistics that openpi "
                "saves with a checkpoint; copy them, or pass statistics=FILE"
            )
        self.path = found[self._choose(found, dataset, assets)]
        content = read_json(self.path)
        inner = content.get("norm_stats", content)
        try:
            self.values = stats.from_lists({
                feature: {name: value for name, value in inner[key].items() if value is not None}
                for feature, key in NAMES.items()
            })
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.path}: expected norm_stats with state and actions, each with mean and std "
                f"(q01 and q99 for π0.5): {error!r}"
            ) from None

    @staticmethod
    def _choose(found: Mapping[str, Path], dataset: str | None, assets: Path) -> str:
        if dataset is not None and dataset in found:
            return dataset
        if dataset is not None or len(found) > 1:
            raise CheckpointError(
                f"{assets} has statistics of {listed(found)}: expected "
                f"{'one of these' if dataset is not None else 'one'}; say which robot this is for "
                "(dataset=NAME)"
            )
        return next(iter(found))

    def width(self, feature: str) -> int:
        """Return how many values a feature has: openpi pads them behind the statistics."""
        return max(len(np.atleast_1d(values)) for values in self.values[feature].values())

    def read(self, feature: str, kind: str, adaptive: bool) -> Statistics:
        """Return a feature's statistics with openpi's eps in them, so that none is to be added.

        LeRobot's formulas with std + eps and q99 + eps for std and q99 are openpi's, both ways.
        """
        mode = "QUANTILES" if adaptive else "MEAN_STD"
        made = stats.checked(feature, mode, self.values[feature], self.width(feature), 0.0,
                             str(self.path), list(self.values))
        spread = stats.NEEDS[mode][1]
        shifted = (made.values[spread].astype(np.float64) + EPS).astype(np.float32)
        return Statistics(
            feature, mode, {**made.values, spread: shifted}, made.eps, made.source
        )
