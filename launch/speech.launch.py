# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot that speaks: the node `tts`, brought up and kept up.

    ros2 launch omni_ros speech.launch.py
    ros2 action send_goal /speak omni_ros/action/Speak "{text: Hello. I am ready.}"
"""

import os

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

#: Seconds before a dead node is started again: time for its endpoints to be given up.
RESPAWN_DELAY_S = 1.0

ARGUMENTS = {
    "voice": ("voice_joe", "bundle of the voice: a path, or the name of an installed one"),
    "device": ("", "sound device: part of its name, or an index; empty: the machine's own choice; "
                   "none: no sound, AudioChunk only"),
    "volume": ("1.0", "of all that is said, 0 to 1"),
    "placement": ("", "YAML file with what to place otherwise: cpus and threads of 'tts'"),
    "params": ("", "YAML file with more parameters of the node"),
    "namespace": ("", "namespace of the node and its topics"),
    "use_sim_time": ("false", "take the time for stamps from /clock"),
    "manage": ("true", "bring the node up (false: another lifecycle manager does)"),
    "respawn": ("true", "start the node again if it dies"),
    "log_level": ("info", "debug, info, warn or error"),
}
CHOICES = {
    "use_sim_time": ["true", "false"], "respawn": ["true", "false"], "manage": ["true", "false"],
    "log_level": ["debug", "info", "warn", "error"],
}


def text(value):
    """Return a parameter that stays the string it is; a plain one is read as YAML."""
    return ParameterValue(value, value_type=str)


def make_nodes(context):
    """Build the nodes from the values of the arguments."""
    value = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    try:
        volume = float(value["volume"])
        if not 0.0 <= volume <= 1.0:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"volume is {value['volume']!r}; write a number from 0 to 1, as in volume:=0.5") from None
    if value["params"] and not os.path.isfile(value["params"]):
        raise ValueError(f"params is {value['params']!r}; there is no such file")

    def node(name, parameters):
        return Node(
            package="omni_ros", executable=name, name=name, namespace=value["namespace"],
            parameters=parameters, output="screen", emulate_tty=False,
            respawn=value["respawn"] == "true", respawn_delay=RESPAWN_DELAY_S,
            arguments=["--ros-args", "--log-level", f"{name}:={value['log_level']}"],
            # A launch that is killed must not leave a voice behind.
            additional_env={"OMNI_ROS_LAUNCHER": str(os.getpid())},
        )

    settings = {
        "voice": text(value["voice"]), "device": text(value["device"]), "volume": volume,
        "placement": text(value["placement"]), "use_sim_time": value["use_sim_time"] == "true",
    }
    nodes = [node("tts", [*filter(None, [value["params"]]), settings])]
    if value["manage"] == "true":
        nodes.append(node("lifecycle_manager", [{"node_names": ["tts"], "use_sim_time": False}]))
    return nodes


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(
            name, default_value=default, description=text, choices=CHOICES.get(name))
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=make_nodes)])
