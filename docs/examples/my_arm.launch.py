# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""vla.launch.py with remaps and node parameters of one's own; copy and change.

    ros2 launch docs/examples/my_arm.launch.py

Facts of the robot belong in its YAML; here stands what depends on the computer and its graph.
"""

from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch.substitutions import PathJoinSubstitution
from launch_ros.actions import SetParametersFromFile, SetRemap
from launch_ros.substitutions import FindPackageShare
from pathlib import Path


def generate_launch_description():
    vla = PathJoinSubstitution([FindPackageShare("omni_ros"), "launch", "vla.launch.py"])
    return LaunchDescription([GroupAction([
        SetParametersFromFile(str(Path(__file__).with_name("my_arm_nodes.yaml"))),
        SetRemap("protective_stop", "/cell/protective_stop"),
        IncludeLaunchDescription(vla, launch_arguments={
            "robot": "tabletop", "world": "true", "policy": "scripted", "dry_run": "false",
        }.items()),
    ])])
