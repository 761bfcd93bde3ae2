# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated arm together with one ros2_control-like controller, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from omni_ros.player.trajectory import TrajectoryPoint
from omni_ros.world.controllers import ForwardCommandController, JointTrajectoryController
from omni_ros.world.simulation import Simulation

JOINT_TRAJECTORY = "joint_trajectory"
FORWARD_POSITION = "forward_position"
FORWARD_VELOCITY = "forward_velocity"
CONTROLLERS = (JOINT_TRAJECTORY, FORWARD_POSITION, FORWARD_VELOCITY)

#: Period of the controllers, seconds.
CONTROL_PERIOD_S = 0.005


class ControlledArm:
    """Runs one controller over the simulation; refused commands are counted, never followed.

    `now_ns`, the time of the last step, is what commands are judged by. Not safe to share between
    threads without a lock.
    """

    def __init__(self, simulation: Simulation, controller: str = JOINT_TRAJECTORY, **options):
        """:param options: those of ``JointTrajectoryController``."""
        if controller not in CONTROLLERS:
            raise ValueError(
                f"unknown controller {controller!r}; use one of {', '.join(CONTROLLERS)}"
            )
        self.simulation = simulation
        self.controller = controller
        self.active = False
        self.now_ns = 0
        self.accepted: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.last_rejection = ""
        self.trajectory = JointTrajectoryController(simulation.joint_names, **options)
        self.forward = ForwardCommandController(simulation.joint_names)
        self._steps = max(1, round(CONTROL_PERIOD_S / simulation.timestep))
        self._stay()

    def activate(self, now_ns: int) -> None:
        """Start taking commands; the arm stays where it is until one comes."""
        self.now_ns = now_ns
        self._stay()
        self.active = True

    def deactivate(self) -> None:
        """Stop taking commands, and forget those in force."""
        self.active = False
        self._stay()

    def reset(self, seed: int) -> None:
        """Start an episode; commands in force are forgotten."""
        self.simulation.reset(seed)
        self._stay()

    def step(self, now_ns: int) -> None:
        """Advance controller and physics by one control period, to the time `now_ns`."""
        self.now_ns = now_ns
        simulation = self.simulation
        if self.controller == JOINT_TRAJECTORY:
            measured = simulation.joint_positions()
            simulation.command_position(self.trajectory.update(now_ns, measured))
        elif self.forward.command is not None:
            if self.controller == FORWARD_POSITION:
                simulation.command_position(self.forward.command)
            else:
                simulation.command_velocity(self.forward.command)
        simulation.step(self._steps)

    def on_trajectory(
        self, joint_names: Sequence[str], points: Sequence[TrajectoryPoint], stamp_ns: int
    ) -> str | None:
        """Take a command for the joint_trajectory controller; return why not, or None."""
        refusal = self._inactive(JOINT_TRAJECTORY) or self.trajectory.on_trajectory(
            joint_names,
            points,
            stamp_ns=stamp_ns,
            now_ns=self.now_ns,
            measured_position=self.simulation.joint_positions(),
            measured_velocity=self.simulation.joint_velocities(),
        )
        return self._count(JOINT_TRAJECTORY, refusal)

    def on_forward(self, controller: str, values: Sequence[float]) -> str | None:
        """Take a command for one of the forward controllers; return why not, or None."""
        refusal = self._inactive(controller) or self.forward.on_command(values)
        return self._count(controller, refusal)

    def _inactive(self, controller: str) -> str | None:
        if not self.active:
            return f"{controller} controller is not active; activate the world first"
        if controller != self.controller:
            return (
                f"{controller} controller is not active, {self.controller} is; start the world "
                f"with controller:={controller} or command through {self.controller}"
            )
        return None

    def _count(self, controller: str, refusal: str | None) -> str | None:
        if refusal is None:
            self.accepted[controller] += 1
        else:
            self.rejected[controller] += 1
            self.last_rejection = refusal
        return refusal

    def _stay(self) -> None:
        measured = self.simulation.joint_positions()
        self.simulation.command_position(measured)
        self.trajectory.hold(measured)
        self.forward.clear()

    def joint_state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return measured positions, velocities and torques, each (6,)."""
        simulation = self.simulation
        return (
            simulation.joint_positions(),
            simulation.joint_velocities(),
            simulation.joint_efforts(),
        )
