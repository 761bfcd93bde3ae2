# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Normalisation statistics of a LeRobot checkpoint, wherever that release put them (numpy).

A checkpoint without usable statistics is refused: LeRobot passes such values through unchanged and
silently, and a robot that gets normalised numbers as radians moves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from omni_ros.policy.normalise import LARGEST, LEAST_SPREAD

from .errors import CheckpointError, listed

NEEDS = {
    "IDENTITY": (),
    "MEAN_STD": ("mean", "std"),
    "MIN_MAX": ("min", "max"),
    "QUANTILES": ("q01", "q99"),
    "QUANTILE10": ("q10", "q90"),
}
# What a data set's meta/stats.json has beside state and actions.
USUAL = re.compile(
    r"observation\.(images?|environment_state)\b|next\.|(timestamp|index|.+_index)$|language"
)
KNOWN = frozenset(("mean", "std", "min", "max", "count", "q01", "q10", "q50", "q90", "q99"))

Arrays = Mapping[str, Mapping[str, np.ndarray]]  # feature -> statistic -> values

# 'normalize_inputs.buffer_observation_state.mean', and with a data set's name before the buffer:
# 'normalize_inputs.so100-red_buffer_observation_state.mean'
OLD_NAME = re.compile(
    r"^(?P<side>normalize_inputs|normalize_targets|unnormalize_inputs|unnormalize_targets"
    r"|unnormalize_outputs|normalize_outputs)\."
    r"(?:(?P<dataset>[^.]+?)[._])?buffer_(?P<feature>.+)\.(?P<statistic>[a-z0-9]+)$"
)
# What some migrated checkpoints carry: 'so100.buffer.action.mean'
INERT_NAME = re.compile(r"^(?P<dataset>.+?)\.buffer\.(?P<feature>.+)$")


@dataclass(frozen=True)
class Statistics:
    """How one feature is normalised; `values` are float32 [width], checked to be usable."""

    feature: str
    mode: str
    values: Mapping[str, np.ndarray]
    eps: float
    source: str


def group(flat: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Turn '<feature>.<statistic>' names into feature -> statistic -> values."""
    grouped: dict[str, dict[str, np.ndarray]] = {}
    for name, values in flat.items():
        feature, _, statistic = name.rpartition(".")
        grouped.setdefault(feature, {})[statistic] = np.asarray(values)
    return grouped


def read_file(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Read statistics a user passes: JSON {feature: {statistic: [values]}}, as meta/stats.json."""
    try:
        return from_lists(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError,
            OverflowError) as error:  # fmt: skip
        raise CheckpointError(
            f"{path}: expected JSON like {{\"action\": {{\"mean\": [...], \"std\": [...]}}}}, as a "
            f"data set's meta/stats.json; reading it gave: {error}"
        ) from None


def from_lists(content: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, np.ndarray]]:
    """Turn lists of numbers into arrays. Raises ValueError, TypeError or AttributeError."""
    made: dict[str, dict[str, np.ndarray]] = {}
    for feature, values in content.items():
        made[str(feature)] = {str(name): np.asarray(v) for name, v in values.items()}
        for name, array in made[str(feature)].items():
            if array.dtype.kind not in "fiu":
                raise ValueError(f"{feature} {name} is {values[name]!r}, no numbers")
    return made


def read_given(
    given: Path | str | Mapping[str, Mapping[str, object]], features: tuple[str, ...]
) -> dict[str, dict[str, np.ndarray]]:
    """Read what a user passes, a file or a mapping, and refuse what would be passed over.

    What is not there is taken from the checkpoint: a misspelt feature would be, too.
    """
    source = "the statistics given" if isinstance(given, Mapping) else str(given)
    try:
        made = from_lists(given) if isinstance(given, Mapping) else read_file(Path(given))
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(
            f"{source}: expected feature -> statistic -> values: {error}"
        ) from None
    check_given(made, features, source)
    return made


def check_given(given: Arrays, features: tuple[str, ...], source: str) -> None:
    """Refuse statistics of none of the features, and names that are nobody's."""
    if not any(feature in given for feature in features):
        raise CheckpointError(
            f"{source} has statistics of {listed(map(str, given)) or 'nothing'}: expected some of "
            f"{' and '.join(features)}"
        )
    strange = [str(name) for name in given if name not in features and not USUAL.match(str(name))]
    absent = [feature for feature in features if feature not in given]
    if strange and absent:
        raise CheckpointError(
            f"{source} has statistics of {listed(strange)}, and none of {listed(absent)}: expected "
            "these names; correct them, or take out what is of no use"
        )


def refuse_contradiction(
    feature: str, values: Mapping[str, np.ndarray], source: str,
    others: Mapping[str, np.ndarray], other_source: str,
) -> None:
    """Refuse a checkpoint that holds two different statistics of one feature."""
    for name in sorted(set(values) & set(others) & (KNOWN - {"count"})):
        one, other = (np.asarray(v, np.float32).reshape(-1) for v in (values[name], others[name]))
        if one.shape != other.shape or not np.allclose(one, other, rtol=1e-4, equal_nan=True):
            if not np.isfinite(other).all():
                continue  # never set, as releases left them that had moved on to processor files
            raise CheckpointError(
                f"{source} and {other_source} disagree about {feature} {name} "
                f"({short_list(one)} and {short_list(other)}): expected one of them; pass "
                "statistics=FILE with those it was trained with"
            )


def short_list(values: np.ndarray) -> str:
    """Return the first few values for a message."""
    return f"[{', '.join(f'{v:.4g}' for v in values[:3])}{', ...' if len(values) > 3 else ''}]"


def is_old_name(name: str) -> bool:
    """Whether a tensor inside model.safetensors is a statistic (LeRobot up to 0.3.3)."""
    return bool(OLD_NAME.match(name)) or name.startswith(("normalize_", "unnormalize_"))


def from_old_names(
    names: list[str], features: Mapping[str, tuple[str, ...]], dataset: str | None
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Match old names to the config's features; return feature -> statistic -> name, and the rest.

    features: feature -> sides in order of preference. Dots had become underscores in these names,
    so the config's names are converted rather than the file's guessed back.
    """
    by_key: dict[tuple[str | None, str, str], dict[str, str]] = {}
    rest, datasets = [], set()
    flattened = {feature.replace(".", "_"): feature for feature in features}
    for name in names:
        match = OLD_NAME.match(name)
        feature = flattened.get(match["feature"]) if match else None
        if feature is None or match["side"] not in features[feature]:
            rest.append(name)
            continue
        datasets.add(match["dataset"])
        by_key.setdefault((match["dataset"], match["side"], feature), {})[match["statistic"]] = name
    chosen = choose_dataset(datasets, dataset, "model.safetensors")
    found: dict[str, dict[str, str]] = {}
    for feature, sides in features.items():
        for side in reversed(sides):  # the preferred side last, so that it wins
            found.setdefault(feature, {}).update(by_key.get((chosen, side, feature), {}))
    rest += [n for (d, _, _), group_ in by_key.items() if d != chosen for n in group_.values()]
    return found, rest


def choose_dataset(found: set[str | None], asked: str | None, where: str) -> str | None:
    """Pick the data set whose statistics are meant; never guess between several."""
    if asked is not None and asked in found:
        return asked
    if asked is not None:
        names = listed(str(name) for name in found if name) or "none by name"
        raise CheckpointError(
            f"{where} has no statistics of the data set {asked!r}: it has {names}; pass one of them"
        )
    if len(found) > 1:
        names = listed(str(name) for name in found if name)
        raise CheckpointError(
            f"{where} has statistics of several data sets ({names}): expected one; say which robot "
            "this is for (dataset=NAME)"
        )
    return next(iter(found), None)


def pick_inert(stored: Arrays, feature: str, dataset: str | None) -> Mapping[str, np.ndarray]:
    """Return statistics stored under '<dataset>.buffer.<feature>', which LeRobot never applies."""
    if dataset is None:
        return {}
    return stored.get(f"{dataset}.buffer.{feature}", {})


def checked(
    feature: str, mode: str, values: Mapping[str, np.ndarray], width: int, eps: float, source: str,
    present: list[str],
) -> Statistics:
    """Return usable statistics or say what is wrong with them and what to pass instead.

    present: the names found where statistics were looked for, for the message.
    """
    if mode not in NEEDS:
        raise CheckpointError(
            f"{feature} is normalised by {mode!r}: expected one of {listed(NEEDS)}"
        )
    keep = {}
    for statistic, array in values.items():
        if statistic in KNOWN:
            keep[statistic] = np.asarray(array, dtype=np.float32).reshape(-1)
    instead = (
        "pass statistics=FILE (the meta/stats.json of the data set it was trained on, or JSON like "
        f"{{\"{feature}\": {example(mode)}}}), or statistics=\"identity\" if its values are meant "
        "unnormalised"
    )
    absent = [name for name in NEEDS[mode] if name not in keep]
    if absent:
        inert = sorted({match["dataset"] for name in present if (match := INERT_NAME.match(name))})
        hint = ""
        if inert:
            hint = (f" These names match no feature, so LeRobot would apply none of them; "
                    f"dataset=NAME takes those of {listed(inert)} where it has them.")
        raise CheckpointError(
            f"{source}: no {' and '.join(absent)} for {feature} (mode {mode}); there is "
            f"{listed(present) or 'nothing'}.{hint} For {feature}, {instead}"
        )
    for statistic in NEEDS[mode]:
        array = keep[statistic]
        if array.shape != (width,):
            raise CheckpointError(
                f"{source}: {feature} {statistic} has {array.size} values: config.json says "
                f"{width}; {instead}"
            )
        far = np.flatnonzero(np.isfinite(array) & (np.abs(array) > LARGEST))
        if far.size:
            raise CheckpointError(
                f"{source}: {feature} {statistic}[{far[0]}] is {array[far[0]]:.3g}: expected at "
                f"most {LARGEST:.0e}, which no unit of a joint reaches; {instead}"
            )
        bad = np.flatnonzero(~np.isfinite(array))
        if bad.size:
            raise CheckpointError(
                f"{source}: {feature} {statistic}[{bad[0]}] is {array[bad[0]]} ({bad.size} of "
                f"{width} values are not finite: they were never set); {instead}"
            )
    refuse_no_spread(feature, mode, keep, source, instead)
    return Statistics(feature, mode, keep, eps, source)


def refuse_no_spread(
    feature: str, mode: str, values: Mapping[str, np.ndarray], source: str, instead: str
) -> None:
    """Refuse a value that never varied: dividing by its spread gives inputs of 1e7."""
    if mode == "IDENTITY":
        return
    low, high = NEEDS[mode]
    spread = values["std"] if mode == "MEAN_STD" else values[high] - values[low]
    flat = np.flatnonzero(~(spread > LEAST_SPREAD))
    if flat.size:
        what = "std" if mode == "MEAN_STD" else f"{high} - {low}"
        raise CheckpointError(
            f"{source}: {feature} {what} at index {flat[0]} is {spread[flat[0]]:.3g} ({flat.size} "
            f"of {spread.size} values never varied): expected more than 1e-7; {instead}, with a "
            "spread you know that value to have (1 keeps it merely shifted)"
        )


def example(mode: str) -> str:
    """Return what a file of statistics would hold for a mode."""
    return "{" + ", ".join(f'"{name}": [...]' for name in NEEDS.get(mode, ())) + "}"
