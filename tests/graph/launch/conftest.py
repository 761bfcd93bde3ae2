# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`ros2 launch omni_ros vla.launch.py` as users run it."""

from __future__ import annotations

import re
import shutil
import time
from typing import Callable

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from rclpy.qos import qos_profile_sensor_data  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from omni_ros.msg import PlayerStatus  # noqa: E402
from omni_ros.nodes._support import LATCHED_QOS  # noqa: E402

COMMAND = "joint_trajectory_controller/joint_trajectory"


def command_line(*arguments: str) -> list[str]:
    """A launch that needs no bundle, unless it is told which policy."""
    if not any(argument.startswith("policy:=") for argument in arguments):
        arguments = ("policy:=scripted", *arguments)
    return [shutil.which("ros2"), "launch", "omni_ros", "vla.launch.py", *arguments]


class Launched:
    """A running launch and what the robot in it says."""

    def __init__(self, graph, tools, *arguments: str, namespace: str = "") -> None:
        self.graph, self.eventually = graph, tools.eventually
        prefix = f"/{namespace}/" if namespace else ""
        self.statuses = graph.record(PlayerStatus, f"{prefix}action_player/status", LATCHED_QOS)
        self.commands = graph.record(JointTrajectory, f"{prefix}{COMMAND}", 100)
        self.joints = graph.record(JointState, f"{prefix}joint_states", qos_profile_sensor_data)
        if namespace:
            arguments = (*arguments, f"namespace:={namespace}")
        self.process = tools.Process(
            f"launch{namespace}", command_line(*arguments), graph.folder)
        graph.processes.append(self.process)

    @property
    def state(self) -> int | None:
        return self.statuses.last.state if self.statuses else None

    def pid(self, name: str) -> int:
        """Process id of a node, of its newest process."""
        pattern = rf"\[{name}-\d+\]: process started with pid \[(\d+)\]"
        return int(re.findall(pattern, self.process.output)[-1])

    def until_moving(self) -> "Launched":
        moment = time.monotonic()
        self.eventually(lambda: self.state == PlayerStatus.STATE_PLAYING
                        and self.statuses[-1][0] > moment
                        and np.abs(self.statuses.last.command_velocity).max() > 0.05, "motion")
        return self

    def position(self) -> np.ndarray:
        """The newest joint positions; the observer may meet the world later than the player did."""
        self.eventually(lambda: self.joints, "joint states")
        return np.array(self.joints.last.position)

    def resting(self) -> bool:
        """Whether the last command that has arrived asks for rest."""
        self.eventually(lambda: self.commands, "a command")
        return not any(self.commands.last.points[0].velocities)

    def states_since(self, moment: float) -> list[int]:
        states = [status.state for _, status in self.statuses.since(moment)]
        return [s for i, s in enumerate(states) if i == 0 or s != states[i - 1]]


@pytest.fixture(scope="session")
def launch_command() -> Callable[..., list[str]]:
    """The command line of a launch with some arguments."""
    return command_line


@pytest.fixture(scope="session")
def launch(tools) -> Callable[..., Launched]:
    """Launch in a graph, with arguments."""
    return lambda graph, *arguments, **options: Launched(graph, tools, *arguments, **options)
