# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot YAML: joints, units, limits, topics and player settings, checked at load."""

from omni_ros.robot.errors import RobotConfigError
from omni_ros.robot.load import load_robot, robot_from_mapping
from omni_ros.robot.player_config import PlayerConfig
from omni_ros.robot.policy_config import PolicyConfig, require_policy
from omni_ros.robot.robot import Joint, Robot

__all__ = [
    "Joint",
    "PlayerConfig",
    "PolicyConfig",
    "Robot",
    "RobotConfigError",
    "load_robot",
    "require_policy",
    "robot_from_mapping",
]
