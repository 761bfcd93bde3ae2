# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Commands as JointTrajectory points, and the rules by which a controller takes or drops them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from omni_ros.player.command import Command


@dataclass(frozen=True)
class TrajectoryPoint:
    """One point of a JointTrajectory, in topic units; the time counts from the header stamp."""

    positions: Sequence[float]
    velocities: Sequence[float]
    accelerations: Sequence[float]
    time_from_start_ns: int


def command_points(command: Command, period_ns: int) -> list[TrajectoryPoint]:
    """Points of the JointTrajectory that carries `command`; its header stamp must be 0.

    Stamp 0 means "from when this arrives", so a message can never end in the past, and the first
    point is one period ahead: the controller has the whole period to get there. The points are
    the command, the setpoints planned after it, and the stop that ends in zero velocity. While
    messages keep coming each replaces the last before its stop begins; when they end, the
    controller itself follows the rest and stops within the limits.

    The velocity at a point is the mean of the steps before and after it, so that the cubics a
    controller draws through positions and velocities join smoothly; the command's own velocity
    is the step before alone. Accelerations are left out: with them the controller draws quintics,
    which swing between points that come from differences.
    """
    position = np.vstack((command.position, command.ahead_position, command.tail_position))
    step = np.vstack((command.velocity, command.ahead_velocity, command.tail_velocity))
    if step[-1].any():
        raise ValueError("a command must end at rest; its last velocity is not zero")
    velocity = np.zeros_like(step)
    velocity[:-1] = 0.5 * (step[:-1] + step[1:])
    return [
        TrajectoryPoint(p, v, (), (index + 1) * period_ns)
        for index, (p, v) in enumerate(zip(position.tolist(), velocity.tolist()))
    ]


def check_joint_trajectory(
    joint_names: Sequence[str],
    points: Sequence[TrajectoryPoint],
    *,
    controller_joints: Sequence[str],
    stamp_ns: int,
    now_ns: int,
    allow_partial: bool = False,
    allow_nonzero_end_velocity: bool = False,
) -> str | None:
    """Judge a JointTrajectory as ros2_control's joint_trajectory_controller would.

    `points` hold positions, velocities, accelerations (each empty or one per joint; positions
    are needed) and time_from_start_ns. Returns None if the controller would follow it, else the
    reason in words. Stricter in one thing: NaN and infinity are refused, which not every
    release of that controller does.
    """
    names = list(joint_names)
    if not names:
        return "no joint names"
    if len(set(names)) != len(names):
        return f"joint names {names} are repeated"
    unknown = [name for name in names if name not in controller_joints]
    if unknown:
        return f"joints {unknown} are not of this controller, which has {list(controller_joints)}"
    if len(names) != len(controller_joints) and not allow_partial:
        missing = [name for name in controller_joints if name not in names]
        return f"joints {missing} are missing and partial goals are not allowed"
    if not points:
        return "no points"
    previous = None
    for index, point in enumerate(points):
        text = _check_point(point, index, len(names))
        if text is not None:
            return text
        if point.time_from_start_ns < 0:
            return f"point {index} is at {point.time_from_start_ns} ns, before the start"
        if previous is not None and point.time_from_start_ns <= previous:
            return (
                f"time does not rise strictly: point {index} at {point.time_from_start_ns} ns"
                f" follows one at {previous} ns"
            )
        previous = point.time_from_start_ns
    if stamp_ns != 0 and stamp_ns + previous < now_ns:
        return (
            f"it ends in the past: at {(stamp_ns + previous) * 1e-9:.3f} s, and it is"
            f" {now_ns * 1e-9:.3f} s"
        )
    if not allow_nonzero_end_velocity:
        for name, velocity in zip(names, points[-1].velocities):
            if abs(velocity) > 1e-9:
                return f"joint {name} has velocity {velocity:g} at the last point, expected zero"
    return None


def _check_point(point: TrajectoryPoint, index: int, n: int) -> str | None:
    for field in ("positions", "velocities", "accelerations"):
        values = getattr(point, field)
        if len(values) != n and (len(values) != 0 or field == "positions"):
            return f"point {index} has {len(values)} {field}, expected {n}"
        if not all(math.isfinite(value) for value in values):
            return f"point {index} has {field} that are NaN or infinite"
    return None
