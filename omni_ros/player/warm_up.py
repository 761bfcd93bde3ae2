# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Play a made-up chunk to nobody, so that the first real tick finds everything loaded."""

from __future__ import annotations

from typing import Callable

import numpy as np

from omni_ros.player.chunk import Chunk
from omni_ros.player.command import Command
from omni_ros.player.player import Player
from omni_ros.player.reasons import ControlMode
from omni_ros.robot import Robot

#: Enough ticks to start, move, run out of rows, brake and hold.
TICKS = 60
START_NS = 10**18
ROWS = 10


def warm_up(robot: Robot, deliver: Callable[[Command], object]) -> int:
    """Run a player of its own through a start, a motion and a stop; return the commands made.

    :param deliver: called with each command, to warm up what turns it into a message.
    :raises ValueError: the robot cannot be played (see Player).
    """
    player = Player(robot)
    period_ns = robot.player.period_ns
    player.activate(START_NS)
    zeros = [0.0] * len(robot.joints)
    commands = 0
    # An arm known to stand, so that the first tick starts at any rate and still window.
    window_ns = round(robot.player.still_window_s * 1e9)
    for before in (window_ns, window_ns // 2, 1):
        then = START_NS - before
        player.on_joint_state(robot.joint_names, robot.home.tolist(), zeros, then, then)
    for index in range(TICKS):
        now = START_NS + index * period_ns
        player.on_joint_state(robot.joint_names, robot.home.tolist(), zeros, now, now)
        player.on_heartbeat("warm-up", now)
        if index == TICKS // 4:
            player.on_chunk(_chunk(robot, now), now)
        command = player.tick(now)
        player.status(now)
        if command is not None:
            deliver(command)
            commands += 1
    return commands


def _chunk(robot: Robot, now: int) -> Chunk:
    mode = ControlMode.VELOCITY if robot.player.velocity_mode else ControlMode.POSITION
    step = 0.1 * robot.velocity
    row = step if robot.player.velocity_mode else robot.home + 0.02 * step
    return Chunk(
        stamp_ns=now, dt_ns=2 * robot.player.period_ns, life_ns=10**9, control_mode=mode,
        values=np.tile(row, (ROWS, 1)), chunk_id=1, source="warm-up", received_ns=now)
