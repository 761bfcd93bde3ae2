# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Everything a robot needs to act: a chunk source, the action player, and a world without a robot.

Arguments are facts of the deployment only; how the robot is played is in its YAML. The lifecycle
manager brings the nodes up in order. A node that dies is started again, and brought up again; the
player holds meanwhile.
"""

import os

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from omni_ros.robot import load_robot
from omni_ros.robot.files import robot_file

#: Largest integer parameter of ROS 2 (int64).
LARGEST_SEED = 2**63 - 1
#: Seconds before a dead node is started again: time for its endpoints to be given up.
RESPAWN_DELAY_S = 1.0
#: Stages of a policy, in the order of the data.
STAGES = ["vision_encoder", "fusion_backbone", "action_head"]

ARGUMENTS = {
    "robot": ("tabletop", "robot YAML: a path, or a name in the package's config/robots"),
    "world": ("true", "start the simulated table-top (false: a real robot's drivers are running)"),
    "policy": ("bundle", "where chunks come from: 'bundle' (a learned policy), 'scripted' (traces a "
                           "path) or 'none' (you publish action_chunk and heartbeat yourself)"),
    "bundle": ("tabletop", "bundle of the policy: a path, or the name of an installed one"),
    "instruction": ("", "sentence to begin with; publish others on the topic 'instruction'"),
    "composition": ("single", "stages of the policy in one process ('single') or each in its own "
                              "('separate')"),
    "transport": ("auto", "tensors between stages: 'auto' (shared memory on one machine) or 'inline' "
                          "(always in the message)"),
    "placement": ("", "YAML file with what to place otherwise: cpus and threads of each stage"),
    "bridge": ("none", "bridge to a remote policy: 'none', or with the mode 'off', 'parity' (compare) "
                       "or 'replan' (the remote's chunks may take over)"),
    "openpi": ("", "ws:// or wss:// of the remote policy, in place of what the mapping says"),
    "mapping": ("omni_serve", "YAML of the remote policy: a path, or a name in config/openpi"),
    "serve": ("false", "let OpenPI's clients drive the policy: starts neither world nor player"),
    "serve_host": ("127.0.0.1", "address that serve listens on; another than this machine's own needs "
                                "serve_token_file"),
    "serve_port": ("8000", "port of serve; 0 takes a free one"),
    "serve_token_file": ("", "file with the token that clients of serve have to send"),
    "speech": ("false", "speak: sentences published on 'say', and the action 'speak'"),
    "voice": ("voice_joe", "bundle of the voice: a path, or the name of an installed one"),
    "sound_device": ("", "part of a sound device's name, or its index; empty: the machine's own "
                         "choice; none: no sound"),
    "path": ("circle", "path of the scripted policy: 'circle' (table-top) or 'wave' (any robot)"),
    "namespace": ("", "namespace of all nodes and topics"),
    "dry_run": ("false", "do everything but send commands"),
    "use_sim_time": ("false", "take the time from /clock (with world: the world publishes it)"),
    "seed": ("0", "seed of the world's first episode"),
    "record": ("false", "record what is needed to do it again: `omni replay BAG` does"),
    "bag": ("", "folder of the recording (default: omni_DATE-TIME in the current folder)"),
    "record_pictures": ("used", "which pictures are recorded: 'used' (by an observation) or 'all'"),
    "appearance": ("plain", "how the world looks: 'plain' or 'varied' (light, colours, camera)"),
    "respawn": ("true", "start nodes that die again"),
    "log_level": ("info", "debug, info, warn or error"),
}
CHOICES = {
    "world": ["true", "false"], "policy": ["bundle", "scripted", "none"],
    "dry_run": ["true", "false"], "composition": ["single", "separate"],
    "bridge": ["none", "off", "parity", "replan"], "serve": ["true", "false"],
    "speech": ["true", "false"], "transport": ["auto", "inline"], "appearance": ["plain", "varied"],
    "record": ["true", "false"], "record_pictures": ["used", "all"],
    "use_sim_time": ["true", "false"], "respawn": ["true", "false"], "path": ["circle", "wave"],
    "log_level": ["debug", "info", "warn", "error"],
}


def text(value):
    """Return a parameter that stays the string it is.

    launch_ros reads a plain one as YAML: `arm #2.yaml` would become `arm`, and `7` a number.
    """
    return ParameterValue(value, value_type=str)


def make_nodes(context):
    """Build the nodes from the values of the arguments."""
    value = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    flag = {name: value[name] == "true" for name in ("world", "dry_run", "use_sim_time", "respawn", "serve")}
    # A refused robot YAML ends the launch here, with its message, before anything is started.
    robot = load_robot(robot_file(value["robot"]))
    if not value["seed"].isdecimal() or int(value["seed"]) > LARGEST_SEED:
        raise ValueError(f"seed is {value['seed']!r}; write a whole number from 0 to {LARGEST_SEED}, "
                         "as in seed:=7")
    common = {"robot": text(value["robot"]), "use_sim_time": flag["use_sim_time"]}
    managed = []

    def node(executable, parameters, order=True, names=None, name=None):
        """One process; `names`: of its nodes, where they are several with names of their own."""
        name = name or executable
        if order:
            managed.extend(names or [name])
        return Node(
            package="omni_ros", executable=executable, name=None if names else name,
            namespace=value["namespace"],
            parameters=[parameters], output="screen", emulate_tty=False,
            respawn=flag["respawn"], respawn_delay=RESPAWN_DELAY_S,
            arguments=["--ros-args", *(
                word for one in names or [name]
                for word in ("--log-level", f"{one}:={value['log_level']}"))],
            # A launch that is killed must not leave a player behind for the next one to meet.
            additional_env={"OMNI_ROS_LAUNCHER": str(os.getpid())},
        )

    nodes = []
    if flag["world"] and not flag["serve"]:
        nodes.append(node("world", {
            # The world is the clock in simulated time, so it does not follow one.
            "use_sim_time": False, "publish_clock": flag["use_sim_time"],
            "seed": int(value["seed"]),
            "controller": robot.player.output,
            "appearance": value["appearance"],
        }))
    if not flag["serve"]:
        nodes.append(node("action_player", {**common, "dry_run": flag["dry_run"]}))
    if value["policy"] == "scripted":
        nodes.append(node("scripted_policy", {**common, "path": text(value["path"])}))
    if value["policy"] == "bundle":
        stage = {**common, "bundle": text(value["bundle"]), "transport": value["transport"],
                 "placement": text(value["placement"])}
        first = {**stage, "instruction": text(value["instruction"])}
        if value["composition"] == "single":
            nodes.append(node("policy_stages", first, names=STAGES))
        else:
            nodes += [node(name, first if name == STAGES[0] else stage) for name in STAGES]
    if value["bridge"] != "none" or flag["serve"]:
        if not value["serve_port"].isdecimal() or int(value["serve_port"]) > 65535:
            raise ValueError(f"serve_port is {value['serve_port']!r}; write a port from 0 to 65535")
        nodes.append(node("openpi_bridge", {
            **common, "mode": text(value["bridge"].replace("none", "off")),
            "mapping": text(value["mapping"]), "openpi": text(value["openpi"]),
            "instruction": text(value["instruction"]), "bundle": text(value["bundle"]),
            "serve": flag["serve"], "serve_host": text(value["serve_host"]),
            "serve_port": int(value["serve_port"]),
            "serve_token_file": text(value["serve_token_file"]),
            "local_source": "scripted" if value["policy"] == "scripted" else "local"}))
    if value["record"] == "true":
        nodes.append(node("recorder", {
            **common, "bag": text(value["bag"]), "all_pictures": value["record_pictures"] == "all",
            "bundle": text(value["bundle"] if value["policy"] == "bundle" else ""),
        }, order=False))
    nodes.append(node("lifecycle_manager", {
        "node_names": list(managed), "use_sim_time": False}, order=False))
    if value["speech"] == "true":
        # Brought up apart: a robot that cannot speak must not be kept from acting.
        nodes.append(node("tts", {
            "voice": text(value["voice"]), "device": text(value["sound_device"]),
            "placement": text(value["placement"]), "use_sim_time": flag["use_sim_time"],
        }, order=False))
        nodes.append(node("lifecycle_manager", {
            "node_names": ["tts"], "use_sim_time": False}, order=False, name="speech_manager"))
    return nodes


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(
            name, default_value=default, description=text, choices=CHOICES.get(name))
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=make_nodes)])
