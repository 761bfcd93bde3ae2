# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot file made to fit a bundle, so that any bundle can be benched without its robot."""

from __future__ import annotations

from pathlib import Path

import yaml

from omni_ros.bundles.manifest import Manifest
from omni_ros.cli import UsageError

#: Units of the topics for each unit that a policy may speak, and how far a joint goes in them.
_UNITS = {"rad": ("revolute", 3.0), "deg": ("revolute", 3.0), "m": ("prismatic", 0.5),
          "normalised": ("revolute", 1.0)}


def robot_for(manifest: Manifest, folder: Path, *, horizon: int) -> Path:
    """Write a robot file with the bundle's joints and cameras; return its path.

    :param horizon: rows that are played of a chunk.
    :raises UsageError: the bundle has no joint names.
    """
    joints = manifest.joints
    if isinstance(joints, str):
        raise UsageError(
            f"bundle {manifest.name} has no joint names (raw): no robot plays it; export it with "
            "--joints NAME:UNIT,...")
    described = []
    for joint in joints:
        kind, reach = _UNITS[joint.unit]
        entry = {
            "name": joint.name, "kind": kind, "policy_unit": joint.unit,
            "position": [-reach, reach], "margin": 0.0, "velocity": 3.0, "acceleration": 20.0,
            "jerk": 400.0, "home": 0.0}
        if joint.unit == "normalised":
            entry["normalised"] = {"policy": [-100.0, 100.0], "joint": [-reach, reach]}
        described.append(entry)
    names = [camera.name for camera in manifest.cameras]
    content = {
        "name": "bench", "base_frame": "base_link",
        "topics": {"joint_states": "joint_states",
                   "joint_trajectory": "joint_trajectory_controller/joint_trajectory",
                   "cameras": {name: f"{name}/image_raw" for name in names}},
        "policy": {"action_rate_hz": 15.0, "execution_horizon": horizon, "guidance": "none"},
        "player": {"rate_hz": 50.0, "output": "joint_trajectory", "switching": "latest"},
        "joints": described,
    }
    path = folder / "bench_robot.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path
