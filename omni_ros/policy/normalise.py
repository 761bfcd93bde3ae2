# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Between robot units and the numbers a policy was trained on.

Formulas and order of operations: LeRobot's normaliser, float32, no clipping anywhere::

    MEAN_STD              (x - mean) / (std + eps)          x * std + mean
    MIN_MAX               2 (x - min) / (max - min) - 1     (x + 1) / 2 * (max - min) + min
    QUANTILES, QUANTILE10 as MIN_MAX with q01, q99 or q10, q90

A range of zero is replaced by eps. Such statistics compute, but turn a millimetre into 1e5:
:func:`check_statistics` refuses them before a robot does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import numpy as np

#: LeRobot's. openpi's own is 1e-6.
EPS = 1e-8

#: Statistics beyond these are of no robot: a spread divides, and everything is float32.
LEAST_SPREAD, LARGEST = 1e-7, 1e9


class Mode(str, Enum):
    """What is done to a feature; names as in a checkpoint's ``normalization_mapping``."""

    IDENTITY = "IDENTITY"
    MEAN_STD = "MEAN_STD"
    MIN_MAX = "MIN_MAX"
    QUANTILES = "QUANTILES"
    QUANTILE10 = "QUANTILE10"


#: Statistics that each mode needs: centre and spread, or lower and upper end.
NEEDED: Mapping[Mode, tuple[str, ...]] = {
    Mode.IDENTITY: (),
    Mode.MEAN_STD: ("mean", "std"),
    Mode.MIN_MAX: ("min", "max"),
    Mode.QUANTILES: ("q01", "q99"),
    Mode.QUANTILE10: ("q10", "q90"),
}


class StatisticsError(ValueError):
    """Statistics that would make a robot move by numbers that mean nothing."""


def parse_mode(text: Mode | str) -> Mode:
    """Return the mode of that name. :raises ValueError: there is none."""
    if isinstance(text, Mode):
        return text
    try:
        return Mode(str(text).upper())
    except ValueError:
        known = ", ".join(mode.value for mode in Mode)
        raise ValueError(f"normalisation mode is {text!r}; expected one of {known}") from None


class Normaliser:
    """One feature, state or action, in both directions. It does not check for sense."""

    def __init__(self, mode: Mode | str, statistics: Mapping[str, np.ndarray], *, width: int,
                 eps: float = EPS) -> None:
        """
        :param statistics: by name, each [width]; what the mode does not need is ignored.
        :param width: true width of the feature, without padding.
        :raises StatisticsError: a needed one is missing or of another width.
        """
        self.mode = parse_mode(mode)
        self.width = width
        missing = [name for name in NEEDED[self.mode] if name not in statistics]
        if missing:
            raise StatisticsError(
                f"{self.mode.value} needs the statistics {', '.join(NEEDED[self.mode])}; "
                f"{', '.join(missing)} missing, given: {', '.join(sorted(statistics)) or 'none'}"
            )
        values = [_vector(name, statistics[name], width) for name in NEEDED[self.mode]]
        eps32 = np.float32(eps)
        if self.mode is Mode.MEAN_STD:
            self._offset, self._spread = values
            self._divisor = self._spread + eps32
        elif values:
            low, high = values
            spread = high - low
            self._offset = low
            self._spread = self._divisor = np.where(spread == 0.0, eps32, spread)

    def forward(self, values: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        """Robot units to the policy's.

        :param values: [..., width], any float type.
        :param out: f32 [..., padded width]: the result in front, zeros behind it (the padding a
            policy is trained with). Without it, a new f32 [..., width].
        :raises ValueError: another width.
        """
        values = np.asarray(values, np.float32)
        if values.ndim == 0 or values.shape[-1] != self.width:
            raise ValueError(
                f"values are {list(values.shape)}; expected [..., {self.width}] to normalise"
            )
        if out is None:
            out = np.empty(values.shape, np.float32)
        elif out.dtype != np.float32 or out.shape[:-1] != values.shape[:-1] or (
                out.shape[-1] < self.width):
            raise ValueError(
                f"output is {out.dtype} {list(out.shape)}; expected float32 "
                f"{list(values.shape[:-1])} + [{self.width} or more]"
            )
        out[..., self.width:] = 0.0
        head = out[..., :self.width]
        if self.mode is Mode.IDENTITY:
            head[...] = values
            return out
        np.subtract(values, self._offset, out=head)
        if self.mode is not Mode.MEAN_STD:
            head *= np.float32(2.0)
        head /= self._divisor
        if self.mode is not Mode.MEAN_STD:
            head -= np.float32(1.0)
        return out

    def inverse(self, values: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        """The policy's numbers to robot units.

        :param values: f32 [..., width or more]; padding behind the true width is cut off.
        :param out: f32 [..., width]; without it, a new array.
        :raises ValueError: too narrow.
        """
        values = np.asarray(values, np.float32)
        if values.ndim == 0 or values.shape[-1] < self.width:
            raise ValueError(
                f"values are {list(values.shape)}; expected [..., {self.width} or more] to bring "
                "back to robot units"
            )
        values = values[..., :self.width]
        out = np.empty(values.shape, np.float32) if out is None else out
        if self.mode is Mode.IDENTITY:
            out[...] = values
            return out
        if self.mode is Mode.MEAN_STD:
            np.multiply(values, self._spread, out=out)
        else:
            np.add(values, np.float32(1.0), out=out)
            out /= np.float32(2.0)
            out *= self._spread
        out += self._offset
        return out


def feature_statistics(table: Mapping[str, np.ndarray], feature: str) -> dict[str, np.ndarray]:
    """Pick the statistics of one feature from a flat ``<feature>.<statistic>`` table.

    Only an exact feature name counts: a table may hold statistics of other data sets beside it.
    """
    prefix = f"{feature}."
    return {key[len(prefix):]: value for key, value in table.items()
            if key.startswith(prefix) and "." not in key[len(prefix):]}


def check_statistics(mode: Mode | str, statistics: Mapping[str, np.ndarray], *, feature: str,
                     width: int, available: Iterable[str] = (), names: Sequence[str] = (),
                     remedy: str = "pass statistics of the training data for this feature") -> None:
    """Refuse statistics that would normalise nothing, or to nonsense.

    :param available: keys that the checkpoint does hold, to be named where none fits the feature.
    :param names: joint names, to name the entries at fault; else their indices are given.
    :param remedy: what to type, as the caller's options spell it.
    :raises StatisticsError: missing, inert (under other names), of another width, infinite, not a
        number, absurdly large, without spread, or with ends the wrong way round.
    """
    mode = parse_mode(mode)
    needed = NEEDED[mode]
    missing = [name for name in needed if name not in statistics]
    if missing:
        text = f"{feature}: {mode.value} needs {', '.join(needed)}; missing: {', '.join(missing)}"
        others = sorted(key for key in available if not key.startswith(f"{feature}."))
        if others and not statistics:
            text += (
                f"; what the checkpoint holds is under other names and inert for this feature: "
                f"{', '.join(others[:4])}{', ...' if len(others) > 4 else ''}"
            )
        raise StatisticsError(f"{text}. Without them nothing would be normalised: {remedy}")
    vectors = {name: _vector(f"{feature}.{name}", statistics[name], width) for name in needed}
    for name, vector in vectors.items():
        bad = ~np.isfinite(vector)
        if bad.any():
            raise StatisticsError(
                f"{feature}.{name} is not finite for {_entries(bad, names)} "
                f"(infinite means: never computed): {remedy}"
            )
        far = np.abs(vector) > LARGEST
        if far.any():
            raise StatisticsError(
                f"{feature}.{name} is {vector[far][0]:.3g} for {_entries(far, names)}; expected at "
                f"most {LARGEST:.0e}, which no unit of a joint reaches: {remedy}"
            )
    if not needed:
        return
    first, second = (vectors[name] for name in needed)
    spread = second if mode is Mode.MEAN_STD else second - first
    what = f"{feature}.{needed[1]}" if mode is Mode.MEAN_STD else (
        f"{feature}: {needed[1]} - {needed[0]}")
    if (spread < 0.0).any():
        raise StatisticsError(
            f"{what} is below 0 for {_entries(spread < 0.0, names)}; expected above 0: {remedy}"
        )
    still = spread <= LEAST_SPREAD
    if still.any():
        advice = "std 1" if mode is Mode.MEAN_STD else "the range the joint can move in"
        raise StatisticsError(
            f"{what} is {spread[still][0]:.3g} for {_entries(still, names)}: that entry never "
            "moved in the training data, and any other value of it would be blown up by 1/eps. If "
            f"it is held still on the robot too, give it {advice}: {remedy}"
        )


def _vector(name: str, value: np.ndarray, width: int) -> np.ndarray:
    with np.errstate(over="ignore"):  # infinite, then, and said to be
        vector = np.array(value, dtype=np.float32)
    if vector.shape != (width,):
        raise StatisticsError(f"{name} is {list(vector.shape)}; expected [{width}]")
    return vector


def _entries(bad: np.ndarray, names: Sequence[str]) -> str:
    picked = [str(names[i]) if i < len(names) else f"entry {i}" for i in np.flatnonzero(bad)]
    return ", ".join(picked)
