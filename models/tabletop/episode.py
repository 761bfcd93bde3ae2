# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The table-top world at the policy's rate: one row of joint targets at a time."""

from __future__ import annotations

import numpy as np

from omni_ros.world.appearance import PLAIN
from omni_ros.world.expert import RATE_HZ
from omni_ros.world.judge import Judge
from omni_ros.world.scene import BLOCK_NAMES, JOINT_LOWER, JOINT_UPPER
from omni_ros.world.simulation import Simulation
from omni_ros.world.tasks import Task

CAMERAS = ("front", "wrist")
IMAGE = 96
#: A row is led to in this many commands, as a player's would be.
COMMANDS = 4
#: What the robot's limiter lets through, rad/s and rad/s^2.
SPEED, ACCELERATION = 3.0, 20.0


class Tabletop:
    """One arm and its table, moved row by row through a limiter of speed and acceleration."""

    def __init__(self, *, appearance: str = PLAIN, limited: bool = True) -> None:
        self.simulation = Simulation(width=IMAGE, height=IMAGE, appearance=appearance)
        self.limited = limited
        per_row = 1.0 / RATE_HZ / self.simulation.timestep
        self._steps = np.diff(np.round(np.arange(COMMANDS + 1) * per_row / COMMANDS)).astype(int)
        self._dt = 1.0 / RATE_HZ / COMMANDS
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.simulation.reset(seed)
        self.settle()

    def settle(self) -> None:
        """Command the arm to stay; call it after the arm was put somewhere."""
        self.command = self.simulation.joint_positions()
        self.velocity = np.zeros(6)

    def row(self, target: np.ndarray) -> None:
        """Play one row (6,)."""
        target = np.clip(target, JOINT_LOWER, JOINT_UPPER)
        for index, steps in enumerate(self._steps):
            wanted = self.command + (target - self.command) / (COMMANDS - index)
            if self.limited:
                velocity = np.clip((wanted - self.command) / self._dt, -SPEED, SPEED)
                room = ACCELERATION * self._dt
                self.velocity = self.velocity + np.clip(velocity - self.velocity, -room, room)
                wanted = self.command + self.velocity * self._dt
            self.command = np.clip(wanted, JOINT_LOWER, JOINT_UPPER)
            self.simulation.command_position(self.command)
            self.simulation.step(int(steps))

    def joints(self) -> np.ndarray:
        return self.simulation.joint_positions()

    def truth(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return blocks (4, 3), their yaws (4,) and the pad (2,)."""
        simulation = self.simulation
        yaws = np.array([simulation.block_yaw(name) for name in BLOCK_NAMES])
        return simulation.block_positions(), yaws, simulation.pad_position()

    def images(self, out: np.ndarray | None = None) -> np.ndarray:
        """Return uint8 (cameras, height, width, 3)."""
        out = np.empty((len(CAMERAS), IMAGE, IMAGE, 3), np.uint8) if out is None else out
        for index, camera in enumerate(CAMERAS):
            self.simulation.render(camera, out[index])
        return out

    def judge(self, task: Task) -> Judge:
        """Return the judge of an episode that starts now."""
        return Judge(task, self._blocks(), pad=self.simulation.pad_position(),
                     start_s=self.simulation.time)

    def ask(self, judge: Judge):
        simulation = self.simulation
        return judge.update(
            simulation.time, tip=simulation.tip(), blocks=self._blocks(),
            touched=simulation.touched(), gripper=float(self.joints()[5]),
        )

    def _blocks(self) -> dict[str, np.ndarray]:
        return dict(zip(BLOCK_NAMES, self.simulation.block_positions(), strict=True))
