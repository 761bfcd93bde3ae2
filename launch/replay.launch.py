# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A recorded bag played into the graph, and the graph's chunks compared with the recorded ones.

The graph is that of vla.launch.py, on the bag's clock, without a world and without sending commands.
It ends with the bag; as an error if a chunk was different, or could not be compared.
"""

import tempfile
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = {
    "bag": (None, "the bag: its folder or file"),
    "rate": ("1.0", "of the clock, 0.01 to 5"),
    "rounds": ("1", "how often the bag is played; 0: for ever"),
    "wait": ("true", "let the clock stand where the policy is too slow for the rate"),
    "robot": ("", "robot YAML: a path or a name (default: the recorded one)"),
    "bundle": ("", "bundle of the policy: a path or a name (default: the recorded one's name)"),
    "composition": ("single", "stages of the policy in one process ('single') or each in its own"),
    "namespace": ("", "namespace of all nodes and topics"),
    "report": ("", "file for the report: .json, or .html with plots"),
    "dry_run": ("true", "the player sends no commands"),
    "log_level": ("info", "debug, info, warn or error"),
}
CHOICES = {"wait": ["true", "false"], "composition": ["single", "separate"],
           "dry_run": ["true", "false"], "log_level": ["debug", "info", "warn", "error"]}


def make(context):
    value = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    robot, bundle = value["robot"], value["bundle"]
    if not robot or not bundle:
        recorded_robot, recorded_bundle = recorded(value["bag"])
        robot, bundle = robot or recorded_robot, bundle or recorded_bundle
    share = Path(get_package_share_directory("omni_ros"))
    graph = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(share / "launch" / "vla.launch.py")),
        launch_arguments={
            "robot": robot, "bundle": bundle, "world": "false", "use_sim_time": "true",
            "policy": "bundle", "instruction": "", "record": "false",
            **{name: value[name] for name in ("composition", "namespace", "dry_run", "log_level")},
        }.items())
    text = {name: ParameterValue(word, value_type=str) for name, word in (
        ("bag", value["bag"]), ("robot", robot), ("bundle", bundle), ("report", value["report"]))}
    replay = Node(
        package="omni_ros", executable="replay", name="replay", namespace=value["namespace"],
        output="screen", emulate_tty=False,
        parameters=[{**text, "rate": float(value["rate"]), "rounds": int(value["rounds"]),
                     "wait": value["wait"] == "true"}],
        arguments=["--ros-args", "--log-level", f"replay:={value['log_level']}"])
    return [graph, replay, RegisterEventHandler(OnProcessExit(
        target_action=replay, on_exit=[OpaqueFunction(function=end_with(context))]))]


def end_with(context):
    """Return what ends the launch after the replay, with its status."""

    def end(inner):
        status = inner.locals.event.returncode
        actions = [EmitEvent(event=Shutdown(reason="the bag is at its end"))]
        if status:
            # What is raised while events are handled becomes the exit status of `ros2 launch`.
            actions.append(OpaqueFunction(function=fail, args=[status]))
        return actions

    return end


def fail(context, status):
    raise RuntimeError(f"the replay ended with status {status}: see its report above")


def recorded(bag):
    """Return robot file and bundle name that a bag was recorded with."""
    from omni_ros.replay.bag import Bag
    from omni_ros.replay.contents import read_contents
    from omni_ros.replay.replaying import robot_of

    with Bag(bag) as opened:
        contents = read_contents(opened)
        if contents.info is None:
            raise RuntimeError(f"{bag} does not say what it was recorded with: give both robot:= and bundle:=")
        _, text = robot_of(contents)
        name = str(contents.info.bundle_name)
    file = Path(tempfile.mkdtemp(prefix="omni_ros_replay_")) / "robot.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file), name


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, description=text, choices=CHOICES.get(name),
                              **({} if default is None else {"default_value": default}))
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=make)])
