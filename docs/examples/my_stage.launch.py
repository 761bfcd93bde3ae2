# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""vla.launch.py with a vision encoder of one's own in place of ours; copy and change.

    ros2 launch docs/examples/my_stage.launch.py bundle:=BUNDLE instruction:="touch the red block"

The player and the world come from vla.launch.py, with `policy:=none`; the two stages that stay are
started here, and brought up by a manager of their own.
"""

import json
import os
import sys
from pathlib import Path

from launch import LaunchDescription, Substitution
from launch.actions import DeclareLaunchArgument, ExecuteProcess, IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

ENCODER = Path(__file__).with_name("my_vision_encoder.py")
OURS = ["fusion_backbone", "action_head"]
ARGUMENTS = {"robot": "tabletop", "bundle": "tabletop", "instruction": "", "world": "true",
             "dry_run": "false"}


class Quoted(Substitution):
    """`NAME:="VALUE"` as YAML reads it back, whatever apostrophes a sentence has."""

    def __init__(self, name, value):
        super().__init__()
        self.name, self.value = name, value

    def perform(self, context):
        return f"{self.name}:={json.dumps(self.value.perform(context), ensure_ascii=False)}"


def generate_launch_description():
    value = {name: LaunchConfiguration(name) for name in ARGUMENTS}
    vla = PathJoinSubstitution([FindPackageShare("omni_ros"), "launch", "vla.launch.py"])
    both = {"robot": value["robot"], "bundle": value["bundle"]}
    # They end when the launch is killed, too, as those of vla.launch.py do.
    ends = {"OMNI_ROS_LAUNCHER": str(os.getpid())}
    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default) for name, default in ARGUMENTS.items()),
        IncludeLaunchDescription(vla, launch_arguments={
            "policy": "none", "robot": value["robot"], "world": value["world"],
            "dry_run": value["dry_run"]}.items()),
        *(Node(package="omni_ros", executable=name, name=name, parameters=[both], respawn=True,
               respawn_delay=1.0, additional_env=ends) for name in OURS),
        Node(package="omni_ros", executable="lifecycle_manager", name="stage_manager",
             parameters=[{"node_names": OURS}], additional_env=ends),
        ExecuteProcess(cmd=[
            sys.executable, "-P", str(ENCODER), "--ros-args",
            "-p", ["robot:=", value["robot"]], "-p", ["bundle:=", value["bundle"]],
            "-p", Quoted("instruction", value["instruction"]),
        ], respawn=True, respawn_delay=1.0, output="screen"),
    ])
