# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a recording is made with: bundle, robot, parameters of the nodes, versions."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Mapping

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from omni_ros import __version__
from omni_ros.bundles import manifest_hash
from omni_ros.bundles.manifest import read_manifest
from omni_ros.bundles.named import MANIFEST, bundle_folder
from omni_ros.msg import RecordingInfo
from omni_ros.replay.configuration import FORMAT, configuration_hash, configuration_yaml, versions
from omni_ros.robot import Robot
from omni_ros.robot.files import robot_file

#: Nodes whose parameters are part of a recording; those that are not there are left out.
NODES = ("vision_encoder", "fusion_backbone", "action_head", "action_player", "scripted_policy")
#: Seconds between two looks for nodes that have not told theirs.
ASK_S = 1.0
_FIELDS = {
    ParameterType.PARAMETER_BOOL: "bool_value", ParameterType.PARAMETER_INTEGER: "integer_value",
    ParameterType.PARAMETER_DOUBLE: "double_value", ParameterType.PARAMETER_STRING: "string_value",
    ParameterType.PARAMETER_BYTE_ARRAY: "byte_array_value",
    ParameterType.PARAMETER_BOOL_ARRAY: "bool_array_value",
    ParameterType.PARAMETER_INTEGER_ARRAY: "integer_array_value",
    ParameterType.PARAMETER_DOUBLE_ARRAY: "double_array_value",
    ParameterType.PARAMETER_STRING_ARRAY: "string_array_value",
}


class Parameters:
    """Asks nodes for their parameters, each once, as it comes up; on the executor's thread."""

    def __init__(self, node: Node) -> None:
        self.known: dict[str, dict[str, Any]] = {}
        self._node, self._asked = node, set()
        self._clients = {name: (node.create_client(ListParameters, f"{name}/list_parameters"),
                                node.create_client(GetParameters, f"{name}/get_parameters"))
                         for name in NODES}
        node.create_timer(ASK_S, self._ask, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _ask(self) -> None:
        for name, (listing, _) in self._clients.items():
            if name not in self._asked and listing.service_is_ready():
                self._asked.add(name)
                listing.call_async(ListParameters.Request()).add_done_callback(
                    partial(self._listed, name))

    def _listed(self, name: str, future) -> None:
        names = sorted(future.result().result.names)
        self._clients[name][1].call_async(GetParameters.Request(names=names)).add_done_callback(
            partial(self._told, name, names))

    def _told(self, name: str, names: list[str], future) -> None:
        values = {one: _plain(value) for one, value in zip(names, future.result().values)}
        self.known[name] = {one: value for one, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    field = _FIELDS.get(value.type)
    if field is None:
        return None
    plain = getattr(value, field)
    return list(plain) if field.endswith("array_value") else plain


def recording_info(*, bundle: str, robot: Robot, robot_name: str, roles: Mapping[str, str],
                   parameters: Mapping[str, Mapping[str, Any]], all_pictures: bool,
                   use_sim_time: bool, source: str) -> RecordingInfo:
    """Return the message, without its stamp.

    :param bundle: a path or name, "" for none. :param roles: topic by role.
    :raises BundleError: there is no such bundle, or it is at fault.
    """
    info = RecordingInfo(format=FORMAT, omni_ros=__version__, all_pictures=all_pictures,
                         use_sim_time=use_sim_time)
    if bundle:
        folder = bundle_folder(bundle)
        info.bundle = manifest_hash(folder)
        info.bundle_name = read_manifest(folder).name
        info.manifest = (folder / MANIFEST).read_text(encoding="utf-8")
        cameras = [camera.name for camera in read_manifest(folder).cameras]
        info.bundle_cameras = cameras
        info.robot_cameras = [robot.policy.robot_camera(name) if robot.policy else name
                              for name in cameras]
    text = robot_file(robot_name).read_text(encoding="utf-8")
    info.configuration_yaml = configuration_yaml(text, parameters)
    info.configuration = configuration_hash(info.configuration_yaml)
    info.roles, info.topics = list(roles), list(roles.values())
    told = {**versions(), "cpus": str(len(os.sched_getaffinity(0))), "source": source}
    info.version_names, info.version_values = list(told), list(told.values())
    return info
