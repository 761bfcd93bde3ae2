# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a policy is shown, and whether it is what the policy was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

import numpy as np


@dataclass(frozen=True)
class Observation:
    """One moment of the robot.

    :param images: by the bundle's camera names: uint8 [height, width, 3], RGB, any size. A camera
        that is known to be missing is named with None: the policy then goes without it.
    :param state: [state], in the units that the policy was trained in.
    :param stamp_ns: when the pictures were taken; a seed's noise depends on it.
    """

    images: Mapping[str, Optional[np.ndarray]]
    state: np.ndarray
    stamp_ns: int = 0


def present_cameras(
    images: Mapping[str, np.ndarray | None], cameras: Sequence[str]
) -> tuple[list[str], tuple[str, ...]]:
    """Return which of the policy's cameras have a picture, and which are known to be missing.

    Both in the policy's order. A camera that is simply not mentioned is an error: a policy that
    goes without a picture acts quite differently, so someone has to mean it.

    :raises ValueError: unknown or unmentioned names, or no picture at all; all names are listed.
    """
    if not isinstance(images, Mapping):
        raise ValueError(
            f"images are {type(images).__name__}; expected a mapping of {', '.join(cameras)} to "
            "pictures"
        )
    unknown = [name for name in images if name not in cameras]
    missing = [name for name in cameras if name not in images]
    if unknown or missing:
        parts = [f"unknown: {', '.join(map(repr, unknown))}"] if unknown else []
        parts += [f"missing: {', '.join(missing)}"] if missing else []
        raise ValueError(
            f"cameras given: {', '.join(map(str, images)) or 'none'}; the policy has "
            f"{', '.join(cameras)} ({'; '.join(parts)}). Map the robot's cameras to these names; "
            "give None for one that shall be masked"
        )
    present = [name for name in cameras if images[name] is not None]
    if not present:
        raise ValueError(
            f"no picture of any camera ({', '.join(cameras)}); expected at least one: a policy "
            "does not act blind"
        )
    return present, tuple(name for name in cameras if images[name] is None)


def check_state(state: np.ndarray, width: int, names: Sequence[str] = ()) -> np.ndarray:
    """Return a state as float32 [width].

    :param names: of the joints, for messages.
    :raises ValueError: another size, with both, or values that are not finite, with their joints.
    """
    values = _numbers("the state", state)
    if values.shape != (width,):
        order = f" ({', '.join(names)})" if names else ""
        raise ValueError(
            f"the state has shape {list(values.shape)}; the policy takes [{width}]{order}: give "
            "its joints, in its order"
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        which = ", ".join(names[i] if i < len(names) else f"entry {i}" for i in bad)
        raise ValueError(f"the state is not finite for {which}; expected a number for every joint")
    return values


def check_leftover(leftover: np.ndarray | None, width: int) -> np.ndarray | None:
    """Return the rows that are left of the chunk before as float32 [rows, width].

    :raises ValueError: another shape, with both, or values that are not finite.
    """
    if leftover is None:
        return None
    values = _numbers("leftover", leftover)
    if values.ndim != 2 or values.shape[1] != width:
        raise ValueError(
            f"leftover has shape {list(values.shape)}; expected [rows, {width}], rows of the "
            "result's `normalised`"
        )
    if not np.isfinite(values).all():
        raise ValueError("leftover holds values that are not finite; drop that plan")
    return values


def check_noise(noise: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return noise as float32 of a shape.

    :raises ValueError: another shape, with both, or values that are not finite.
    """
    values = _numbers("noise", noise)
    if values.shape != shape or not np.isfinite(values).all():
        fact = f"has shape {list(values.shape)}" if values.shape != shape else (
            "holds values that are not finite")
        raise ValueError(
            f"noise {fact}; expected finite values {list(shape)} (chunk, padded action)"
        )
    return values


def _numbers(what: str, values: object) -> np.ndarray:
    """Return real numbers as float32; what is beyond its range becomes infinite."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{what} is {array.dtype} {list(array.shape)}; expected real numbers")
    with np.errstate(over="ignore"):
        return array.astype(np.float32, copy=False)
