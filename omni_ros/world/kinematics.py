# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Closed-form kinematics of the table-top arm: pan, a two-link arm, and the hand's tilt.

Exact to rounding, vectorised over leading dimensions, and free of the simulator. Positions are
metres in frame "world"; angles are radians; joint arrays end in the six joints of
``scene.JOINT_NAMES``. Tilt is the hand's pitch: 0 is straight down, negative reaches outwards.
"""

from __future__ import annotations

import numpy as np

from omni_ros.world.scene import (
    BLOCK_RADIUS,
    FOREARM,
    HAND,
    JOINT_LOWER,
    JOINT_UPPER,
    SHOULDER_HEIGHT,
    SHOULDER_OFFSET,
    UPPER_ARM,
)

_LARGEST_TILT = -0.6


class UnreachableError(ValueError):
    """No joint positions put the tip there; the message says by how much."""


def forward(joints: np.ndarray) -> np.ndarray:
    """Return tip positions (..., 3) of joint positions (..., 6)."""
    joints = np.asarray(joints, dtype=np.float64)
    upper = joints[..., 1]
    fore = upper + joints[..., 2]
    tilt = fore + joints[..., 3]
    reach = (
        SHOULDER_OFFSET + UPPER_ARM * np.sin(upper) + FOREARM * np.cos(fore) - HAND * np.sin(tilt)
    )
    height = (
        SHOULDER_HEIGHT + UPPER_ARM * np.cos(upper) - FOREARM * np.sin(fore) - HAND * np.cos(tilt)
    )
    pan = joints[..., 0]
    return np.stack([reach * np.cos(pan), reach * np.sin(pan), height], axis=-1)


def tilt_of(joints: np.ndarray) -> np.ndarray:
    """Return the hand's tilt (...) of joint positions (..., 6)."""
    return np.asarray(joints, dtype=np.float64)[..., 1:4].sum(axis=-1)


def tilt_for_reach(reach: np.ndarray) -> np.ndarray:
    """Return a tilt with which the whole block area can be reached, also from above.

    Straight down close by; leaning outwards with distance, because a hand held straight down
    can hover over blocks only up to 0.25 m.
    """
    near = BLOCK_RADIUS[0] - 0.01
    share = np.clip((np.asarray(reach) - near) / (BLOCK_RADIUS[1] - near), 0.0, 1.0)
    return _LARGEST_TILT * share


def inverse(
    tip: np.ndarray,
    *,
    tilt: np.ndarray | float | None = None,
    roll: np.ndarray | float = 0.0,
    gripper: np.ndarray | float = 0.2,
    strict: bool = True,
) -> np.ndarray:
    """Return joint positions (..., 6), elbow up, that put the tip at (..., 3).

    :param tilt: the hand's tilt; None takes ``tilt_for_reach``.
    :param roll: wrist roll; at tilt 0 the jaw opens along yaw ``pan + roll``.
    :param strict: raise where a point is out of reach or of the joints' ranges; otherwise go as
        near as the links allow and clip to the ranges.
    :raises UnreachableError: naming how far away the point is and what would reach.
    """
    tip = np.asarray(tip, dtype=np.float64)
    reach = np.hypot(tip[..., 0], tip[..., 1])
    tilt = tilt_for_reach(reach) if tilt is None else np.broadcast_to(tilt, reach.shape)
    # The wrist seen from the shoulder axis, in the arm's plane.
    out = reach + HAND * np.sin(tilt) - SHOULDER_OFFSET
    up = tip[..., 2] + HAND * np.cos(tilt) - SHOULDER_HEIGHT
    distance = np.hypot(out, up)
    bend = (UPPER_ARM**2 + FOREARM**2 - distance**2) / (2 * UPPER_ARM * FOREARM)
    if strict:
        _check_reach(distance, bend)
    elbow = np.pi / 2 - np.arccos(np.clip(bend, -1.0, 1.0))
    # Direction of the wrist from vertical, less the share of the triangle at the shoulder.
    inner = np.arctan2(FOREARM * np.cos(elbow), UPPER_ARM - FOREARM * np.sin(elbow))
    lift = np.arctan2(out, up) - inner
    joints = np.stack(
        [
            np.arctan2(tip[..., 1], tip[..., 0]),
            lift,
            elbow,
            tilt - lift - elbow,
            np.broadcast_to(roll, reach.shape),
            np.broadcast_to(gripper, reach.shape),
        ],
        axis=-1,
    )
    if strict:
        _check_ranges(joints)
    return joints if strict else np.clip(joints, JOINT_LOWER, JOINT_UPPER)


def roll_for_yaw(pan: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Return the smallest wrist roll that lines the jaw up with a cube's yaw (period 90 deg)."""
    quarter = np.pi / 2
    return (np.asarray(yaw) - pan + quarter / 2) % quarter - quarter / 2


def _check_reach(distance: np.ndarray, bend: np.ndarray) -> None:
    if np.any(np.abs(bend) > 1.0) or not np.all(np.isfinite(bend)):
        worst = float(np.max(np.where(np.isfinite(distance), distance, np.inf)))
        raise UnreachableError(
            f"wrist would be {worst:.3f} m from the shoulder, the links reach "
            f"{FOREARM - UPPER_ARM:.3f} to {FOREARM + UPPER_ARM:.3f} m; move the point or "
            "change tilt"
        )


def _check_ranges(joints: np.ndarray) -> None:
    outside = (joints < JOINT_LOWER) | (joints > JOINT_UPPER)
    if np.any(outside):
        index = int(np.argwhere(outside)[0][-1])
        value = joints[..., index][outside[..., index]].flat[0]
        raise UnreachableError(
            f"joint {index} would be at {value:.3f} rad, its range is "
            f"{JOINT_LOWER[index]} to {JOINT_UPPER[index]} rad; move the point or change tilt"
        )
