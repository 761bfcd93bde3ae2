# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The physics are good enough to pick up blocks: a scripted grasp lifts one and keeps it."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.world import kinematics
from omni_ros.world.scene import BLOCK_NAMES, GRIPPER_OPEN
from omni_ros.world.simulation import Simulation

CLOSED = -0.17


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return Simulation()


def move(simulation: Simulation, target: np.ndarray, seconds: float) -> None:
    """Go to a pose smoothly."""
    start = simulation.target
    count = round(seconds / (2 * simulation.timestep))
    for step in range(1, count + 1):
        share = step / count
        simulation.command_position(start + (target - start) * share**2 * (3 - 2 * share))
        simulation.step(2)


def grasp(simulation: Simulation, index: int) -> np.ndarray:
    """Close the gripper on a block; return the block's centre from before."""
    block = simulation.block_positions()[index]
    pan = np.arctan2(block[1], block[0])
    reach = np.hypot(block[0], block[1])
    tilt = min(0.0, -8 * (reach - 0.235))  # straight down where the arm is long enough
    roll = kinematics.roll_for_yaw(pan, simulation.block_yaw(BLOCK_NAMES[index]))

    # The fixed finger comes down a little off the block; closing slides the block up to it.
    clearance = 0.006 * np.array([np.cos(pan + roll), np.sin(pan + roll), 0.0])

    def pose(height: float, gripper: float) -> np.ndarray:
        tip = block + clearance + [0, 0, height]
        return kinematics.inverse(tip, tilt=tilt, roll=roll, gripper=gripper)

    move(simulation, pose(0.06, GRIPPER_OPEN), 1.0)
    move(simulation, pose(-0.006, GRIPPER_OPEN), 0.6)
    simulation.step(100)
    move(simulation, pose(-0.006, CLOSED), 0.5)
    simulation.step(100)
    lifted = pose(0.05, CLOSED)
    move(simulation, lifted, 1.0)
    return block


@pytest.mark.parametrize("seed", range(8))
def test_a_gripped_block_is_lifted_and_held_for_a_second(simulation, seed):
    simulation.reset(seed)
    index = seed % 4
    before = grasp(simulation, index)
    simulation.step(100)
    lifted = simulation.block_positions()[index]
    simulation.step(round(1.0 / simulation.timestep))
    held = simulation.block_positions()[index]
    assert lifted[2] - before[2] > 0.045
    assert np.linalg.norm(held - lifted) < 0.002
    assert simulation.touched() == [BLOCK_NAMES[index]]


def test_an_opened_gripper_drops_the_block(simulation):
    simulation.reset(2)
    grasp(simulation, 0)
    opened = simulation.target
    opened[5] = GRIPPER_OPEN
    move(simulation, opened, 0.5)
    simulation.step(200)
    assert simulation.block_positions()[0][2] < 0.03
    assert simulation.touched() == []


def test_the_squeeze_stays_within_what_the_servo_gives(simulation):
    simulation.reset(0)
    grasp(simulation, 0)
    assert abs(simulation.joint_efforts()[5]) <= 0.6 + 1e-9
