# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Clocked playback of action chunks behind a command limiter and a watchdog. Free of ROS."""

from omni_ros.player.chunk import Chunk, Refusal, parse_chunk
from omni_ros.player.command import Command, Counters, PlayerStatusData
from omni_ros.player.player import Player
from omni_ros.player.reasons import REASON_COUNT, ControlMode, Reason, State
from omni_ros.player.trajectory import (
    TrajectoryPoint,
    check_joint_trajectory,
    command_points,
)

__all__ = [
    "REASON_COUNT",
    "Chunk",
    "Command",
    "ControlMode",
    "Counters",
    "Player",
    "PlayerStatusData",
    "Reason",
    "Refusal",
    "State",
    "TrajectoryPoint",
    "check_joint_trajectory",
    "command_points",
    "parse_chunk",
]
