# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a bundle was trained for this robot: joints by name, units, cameras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Sequence

import numpy as np

from omni_ros.bundles.layout import JointName, Manifest
from omni_ros.robot import Robot


@dataclass(frozen=True)
class Fit:
    """How a bundle's vectors map to a robot's.

    :param state: index of the robot's joint for each value of the state.
    :param action_names: the robot's joint of each action, by its name on the topics.
    :param action_units: the unit that each action is in.
    :param cameras: the robot's camera for each camera of the bundle, in the bundle's order.
    """

    state: np.ndarray
    action_names: tuple[str, ...]
    action_units: tuple[str, ...]
    cameras: Mapping[str, str]

    def state_of(self, positions: np.ndarray, robot: Robot) -> np.ndarray:
        """Return the state f64 [state], in the policy's units, of positions by robot joint."""
        return robot.to_policy(positions)[self.state]


def fit_robot(manifest: Manifest, robot: Robot, cameras: Mapping[str, str] | None = None) -> Fit:
    """Compare a bundle with a robot.

    :param cameras: the robot's camera for a camera of the bundle; those not named are called the
        same on both sides.
    :raises ValueError: joints, units or cameras differ; with both sides and what to change.
    """
    if robot.player.velocity_mode:
        raise ValueError(
            f"robot {robot.name}: player.output is {robot.player.output}, and bundle "
            f"{manifest.name} gives positions; choose joint_trajectory or forward_position")
    actions = _joints(manifest, robot, "joints", manifest.joints)
    missing = [name for name in robot.joint_names
               if name not in {robot.joints[index].name for index in actions}]
    if missing:
        raise ValueError(
            f"bundle {manifest.name} moves no {', '.join(missing)}, joints of robot {robot.name}; "
            "a chunk has to name every joint: take another bundle, or leave them out of the "
            "robot YAML")
    state = _joints(manifest, robot, "state joints", manifest.state_joints)
    return Fit(
        state=np.array(state, dtype=np.intp),
        action_names=tuple(robot.joints[index].name for index in actions),
        action_units=tuple(robot.joints[index].policy_unit for index in actions),
        cameras=_cameras(manifest, robot, dict(cameras or {})),
    )


def _joints(manifest: Manifest, robot: Robot, what: str,
            joints: Sequence[JointName] | str) -> list[int]:
    if isinstance(joints, str):
        raise ValueError(
            f"bundle {manifest.name} has {joints} {what}: nothing says which joint a value moves. "
            "Export it again with --joints NAME:UNIT,...")
    known = list(robot.policy_names)
    unknown = [joint.name for joint in joints if joint.name not in known]
    if unknown:
        raise ValueError(
            f"bundle {manifest.name} has the {what} {', '.join(j.name for j in joints)}; robot "
            f"{robot.name} knows {', '.join(known)} (policy_name): {', '.join(unknown)} unknown. "
            "Set policy_name in the robot YAML")
    indices = [known.index(joint.name) for joint in joints]
    wrong = [f"{joint.name} in {joint.unit} (robot YAML: {robot.joints[index].policy_unit})"
             for joint, index in zip(joints, indices)
             if joint.unit != robot.joints[index].policy_unit]
    if wrong:
        raise ValueError(
            f"bundle {manifest.name} has the {what} {', '.join(wrong)}; set policy_unit in the "
            "robot YAML to what the policy was trained in")
    return indices


def _cameras(manifest: Manifest, robot: Robot, given: Mapping[str, str]) -> dict[str, str]:
    wanted = [camera.name for camera in manifest.cameras]
    strange = [name for name in given if name not in wanted]
    if strange:
        raise ValueError(
            f"policy.cameras of robot {robot.name} names {', '.join(strange)}; bundle "
            f"{manifest.name} has the cameras {', '.join(wanted)}")
    found = {name: given.get(name, name) for name in wanted}
    missing = [f"{name} ({found[name]})" for name in wanted if found[name] not in robot.cameras]
    if missing:
        raise ValueError(
            f"bundle {manifest.name} was trained with the cameras {', '.join(wanted)}; robot "
            f"{robot.name} has {', '.join(robot.cameras) or 'none'}: {', '.join(missing)} missing. "
            "Add the topic to topics.cameras, or map the name in policy.cameras of the robot YAML")
    return found
