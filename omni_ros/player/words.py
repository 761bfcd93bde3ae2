# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reasons in plain words, with what was measured where the joints are the reason."""

from __future__ import annotations

import numpy as np

from omni_ros.player.inputs import Measured
from omni_ros.player.reasons import Reason
from omni_ros.player.watchdog import Ages, describe
from omni_ros.robot import Robot


def in_words(reason: Reason, ages: Ages, measured: Measured, robot: Robot) -> str:
    """Say a reason to hold still, with the numbers and the joint behind it."""
    beyond = np.maximum(robot.lower - measured.position, measured.position - robot.upper)
    outside = beyond > 0.0
    if reason is Reason.OUT_OF_LIMITS and outside.any():
        index = int(np.argmax(beyond / (robot.upper - robot.lower)))
        joint = robot.joints[index]
        more = f", and {outside.sum() - 1} more" if outside.sum() > 1 else ""
        text = (
            f"joint {joint.name} is measured at {measured.position[index]:.6g} {joint.unit},"
            f" outside of the position limits {joint.lower:g} to {joint.upper:g}{more}"
        )
        if not measured.impossible:
            return text
        return f"{text}; too far to be true: check its encoder, or the robot YAML"
    unsettled = measured.complete and not measured.still
    fresh = not ages.joint_state > robot.player.joint_state_timeout_s
    if reason in (Reason.NO_JOINT_STATE, Reason.JOINT_STATE_STALE) and unsettled and fresh:
        return (
            "joint states have not agreed on a pose at rest for"
            f" {robot.player.still_window_s:g} s yet (still_window_s, still_speed)"
        )
    return describe(reason, ages, robot.player)
