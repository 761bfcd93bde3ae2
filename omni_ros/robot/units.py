# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Linear maps between the unit a policy speaks and the unit of the ROS topics (REP-103)."""

from __future__ import annotations

import math

TOPIC_UNITS = ("rad", "m")
POLICY_UNITS = ("rad", "deg", "m", "normalised")
KINDS = {"revolute": "rad", "gripper": "rad", "prismatic": "m"}


def linear_map(
    policy_unit: str, policy_range: tuple[float, float], joint_range: tuple[float, float]
) -> tuple[float, float]:
    """Return (scale, offset) with `topic = policy * scale + offset`.

    The ranges matter for "normalised" only: the ends of `policy_range` mean those of
    `joint_range`. For an identical unit the map is exactly (1, 0).
    """
    if policy_unit == "deg":
        return math.pi / 180.0, 0.0
    if policy_unit == "normalised":
        scale = (joint_range[1] - joint_range[0]) / (policy_range[1] - policy_range[0])
        return scale, joint_range[0] - policy_range[0] * scale
    return 1.0, 0.0
