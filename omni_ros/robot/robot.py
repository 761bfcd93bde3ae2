# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot as the player and the world see it: joints, units, limits, topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

import numpy as np

from omni_ros.robot.player_config import PlayerConfig
from omni_ros.robot.policy_config import PolicyConfig
from omni_ros.robot.units import linear_map


@dataclass(frozen=True)
class Joint:
    """One joint. Limits and home are in `unit`, the unit of the ROS topics."""

    name: str
    kind: str  # "revolute", "prismatic" or "gripper"
    unit: str  # "rad" or "m"
    policy_name: str
    policy_unit: str  # "rad", "deg", "m" or "normalised"
    lower: float
    upper: float
    margin: float  # commands keep this far from lower and upper
    velocity: float
    acceleration: float
    jerk: float
    home: float
    policy_range: tuple[float, float] = (0.0, 1.0)  # "normalised" only
    joint_range: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Robot:
    """Joints in the order of the robot YAML; arrays are float64 of shape (n,), n joints."""

    name: str
    base_frame: str
    joints: tuple[Joint, ...]
    topics: Mapping[str, Any]
    player: PlayerConfig
    policy: PolicyConfig | None = None  # None: not set up for a learned one
    lower: np.ndarray = field(init=False, repr=False)
    upper: np.ndarray = field(init=False, repr=False)
    margin: np.ndarray = field(init=False, repr=False)
    velocity: np.ndarray = field(init=False, repr=False)
    acceleration: np.ndarray = field(init=False, repr=False)
    jerk: np.ndarray = field(init=False, repr=False)
    home: np.ndarray = field(init=False, repr=False)
    is_gripper: np.ndarray = field(init=False, repr=False)
    scale: np.ndarray = field(init=False, repr=False)
    offset: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "margin", "velocity", "acceleration", "jerk", "home"):
            self._keep(name, [getattr(joint, name) for joint in self.joints])
        self._keep("is_gripper", [joint.kind == "gripper" for joint in self.joints])
        maps = [linear_map(j.policy_unit, j.policy_range, j.joint_range) for j in self.joints]
        self._keep("scale", [scale for scale, _ in maps])
        self._keep("offset", [offset for _, offset in maps])

    def _keep(self, name: str, values: list[Any]) -> None:
        array = np.array(values, dtype=bool if name == "is_gripper" else np.float64)
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names on the ROS topics."""
        return tuple(joint.name for joint in self.joints)

    @property
    def policy_names(self) -> tuple[str, ...]:
        """Names in the policy's data set, in the same order."""
        return tuple(joint.policy_name for joint in self.joints)

    @property
    def policy_units(self) -> tuple[str, ...]:
        """Units the policy speaks, in the same order."""
        return tuple(joint.policy_unit for joint in self.joints)

    @property
    def cameras(self) -> Mapping[str, str]:
        """Image topic of each camera by its name."""
        return self.topics["cameras"]

    @property
    def command_topic(self) -> str:
        """Topic that commands go to in the configured output mode."""
        return self.topics[self.player.output]

    def to_topic(self, values: np.ndarray) -> np.ndarray:
        """Positions in policy units, shape (..., n), to topic units, float64."""
        return np.asarray(values, dtype=np.float64) * self.scale + self.offset

    def to_policy(self, values: np.ndarray) -> np.ndarray:
        """Positions in topic units, shape (..., n), to policy units, float64."""
        return (np.asarray(values, dtype=np.float64) - self.offset) / self.scale

    def velocity_to_topic(self, values: np.ndarray) -> np.ndarray:
        """Velocities (or differences of positions) in policy units to topic units, float64."""
        return np.asarray(values, dtype=np.float64) * self.scale

    def velocity_to_policy(self, values: np.ndarray) -> np.ndarray:
        """Velocities (or differences of positions) in topic units to policy units, float64."""
        return np.asarray(values, dtype=np.float64) / self.scale
