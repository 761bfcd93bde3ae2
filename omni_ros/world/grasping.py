# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The geometry of gripping a block: how the hand stands, and what lies between its fingers.

Vectorised numpy over leading dimensions; metres, radians, frame "world" unless said otherwise.
"""

from __future__ import annotations

import numpy as np

from omni_ros.world.scene import HAND, SHOULDER_HEIGHT, SHOULDER_OFFSET

HELD_GRIP = 0.29  # closed on a block: 0.214 where it lies square
CORNER_GRIP = 0.45  # closed on a block that lies askew: it is held if it comes along
STRETCH = 0.242  # from shoulder to wrist; the links are 0.251 long


def grasp_tilt(reach: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Return the hand's tilt at a place: straight down, or as little off it as the arm needs.

    The links stretch to ``STRETCH`` at the most: nearer to straight, joints would have to race.
    """
    along, up = reach - SHOULDER_OFFSET, height - SHOULDER_HEIGHT
    distance = np.maximum(np.hypot(along, up), 1e-6)
    sine = (STRETCH**2 - distance**2 - HAND**2) / (2 * HAND * distance)
    return np.clip(np.arcsin(np.clip(sine, -1.0, 1.0)) - np.arctan2(up, along), -0.8, 0.0)


def hand_frame(pan: np.ndarray, tilt: np.ndarray, roll: np.ndarray) -> np.ndarray:
    """Return rotations (n, 3, 3) from hand to world; the jaw opens along the hand's -x."""
    cp, sp, ct, st = np.cos(pan), np.sin(pan), np.cos(tilt), np.sin(tilt)
    cr, sr = np.cos(roll), np.sin(roll)
    rows = [
        [cp * ct * cr - sp * sr, -cp * ct * sr - sp * cr, cp * st],
        [sp * ct * cr + cp * sr, -sp * ct * sr + cp * cr, sp * st],
        [-st * cr, st * sr, ct],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def between_fingers(local: np.ndarray) -> np.ndarray:
    """Return whether a block's centre, seen from the tip in the hand's frame, can be gripped."""
    u, v, w = local[..., 0], local[..., 1], local[..., 2]
    return (u > -0.034) & (u < 0.013) & (np.abs(v) < 0.015) & (w > -0.003) & (w < 0.021)


def in_hand(local: np.ndarray, grip: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Return whether a block seen from the tip is held, however crookedly.

    :param bottom: height of its lower face above the table, were it level.
    """
    u, v, w = local[..., 0], local[..., 1], local[..., 2]
    near = (u > -0.024) & (u < 0.013) & (np.abs(v) < 0.020) & (w > -0.013) & (w < 0.023)
    return near & ((grip < HELD_GRIP) | ((grip < CORNER_GRIP) & (bottom > 0.005)))


def nearest_roll(pan: np.ndarray, yaw: np.ndarray, roll: np.ndarray) -> np.ndarray:
    """Return the wrist roll nearest to `roll` that lines the jaw up with a cube."""
    quarter = np.pi / 2
    wanted = yaw - pan
    wanted = roll + (wanted - roll + quarter / 2) % quarter - quarter / 2
    # Not further round than needed: two neighbouring rolls always lie inside.
    wanted = np.where(wanted > 1.0, wanted - quarter, wanted)
    return np.where(wanted < -1.0, wanted + quarter, wanted)
