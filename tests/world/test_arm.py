# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The arm under each controller: who may command it, and what it does when commands stop."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.player.trajectory import TrajectoryPoint
from omni_ros.world.arm import (
    CONTROL_PERIOD_S,
    CONTROLLERS,
    FORWARD_POSITION,
    FORWARD_VELOCITY,
    JOINT_TRAJECTORY,
    ControlledArm,
)
from omni_ros.world.scene import JOINT_NAMES
from omni_ros.world.simulation import Simulation

PERIOD_NS = round(CONTROL_PERIOD_S * 1e9)


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return Simulation()


@pytest.fixture()
def make_arm(simulation):
    def make(controller: str, **options) -> ControlledArm:
        simulation.reset(0)
        arm = ControlledArm(simulation, controller, **options)
        arm.activate(1_000_000_000)
        return arm

    return make


def run(arm: ControlledArm, seconds: float) -> None:
    for _ in range(round(seconds / CONTROL_PERIOD_S)):
        arm.step(arm.now_ns + PERIOD_NS)


def measured(arm: ControlledArm) -> np.ndarray:
    return arm.joint_state()[0]


def goal(arm: ControlledArm, offset: float, seconds: float) -> list[TrajectoryPoint]:
    end = (measured(arm) + offset * np.eye(6)[0]).tolist()
    return [TrajectoryPoint(end, [0.0] * 6, (), int(seconds * 1e9))]


def test_the_arm_follows_a_trajectory_and_stays_at_its_end(make_arm):
    arm = make_arm(JOINT_TRAJECTORY)
    start = measured(arm)
    assert arm.on_trajectory(JOINT_NAMES, goal(arm, 0.3, 1.0), 0) is None
    run(arm, 2.0)
    np.testing.assert_allclose(measured(arm) - start, [0.3, 0, 0, 0, 0, 0], atol=1e-3)
    reached = measured(arm)
    run(arm, 1.0)
    np.testing.assert_allclose(measured(arm), reached, atol=1e-4)


def test_forward_position_goes_to_the_last_command_and_stays(make_arm):
    arm = make_arm(FORWARD_POSITION)
    target = measured(arm) + [0.2, 0.1, -0.1, 0, 0.3, 0]
    assert arm.on_forward(FORWARD_POSITION, target) is None
    run(arm, 3.0)
    np.testing.assert_allclose(measured(arm), target, atol=1e-3)


def test_forward_velocity_keeps_the_last_command_for_ever(make_arm):
    arm = make_arm(FORWARD_VELOCITY)
    arm.on_forward(FORWARD_VELOCITY, [0.1, 0, 0, 0, 0, 0])
    run(arm, 2.0)
    before = measured(arm)[0]
    run(arm, 5.0)
    assert measured(arm)[0] - before == pytest.approx(0.5, abs=0.01)


def test_a_refused_velocity_leaves_the_last_one_in_force(make_arm):
    arm = make_arm(FORWARD_VELOCITY)
    arm.on_forward(FORWARD_VELOCITY, [0.1, 0, 0, 0, 0, 0])
    run(arm, 1.0)
    before = measured(arm)[0]
    for bad in ([0.0] * 5, [float("nan")] * 6):
        assert arm.on_forward(FORWARD_VELOCITY, bad) is not None
    run(arm, 1.0)
    assert measured(arm)[0] - before == pytest.approx(0.1, abs=0.01)
    assert arm.rejected[FORWARD_VELOCITY] == 2


@pytest.mark.parametrize("active", CONTROLLERS)
def test_only_the_active_controller_is_obeyed(make_arm, active):
    arm = make_arm(active)
    start = measured(arm)
    if active != JOINT_TRAJECTORY:
        refusal = arm.on_trajectory(JOINT_NAMES, goal(arm, 0.3, 1.0), 0)
        assert f"controller:={JOINT_TRAJECTORY}" in refusal
    for controller in {FORWARD_POSITION, FORWARD_VELOCITY} - {active}:
        assert f"controller:={controller}" in arm.on_forward(controller, [0.5] * 6)
    run(arm, 0.5)
    np.testing.assert_allclose(measured(arm), start, atol=1e-6)


def test_no_command_is_taken_before_activation(simulation):
    simulation.reset(0)
    arm = ControlledArm(simulation)
    assert "activate" in arm.on_trajectory(JOINT_NAMES, goal(arm, 0.3, 1.0), 0)


@pytest.mark.parametrize("controller", [FORWARD_POSITION, FORWARD_VELOCITY])
def test_commands_in_force_end_with_deactivation(make_arm, controller):
    arm = make_arm(controller)
    arm.on_forward(controller, [0.4] * 6)
    run(arm, 0.2)
    arm.deactivate()
    arm.activate(arm.now_ns)
    run(arm, 1.0)
    still = measured(arm)
    run(arm, 0.5)
    np.testing.assert_allclose(measured(arm), still, atol=1e-4)


def test_a_reset_ends_the_motion_and_starts_the_episode(make_arm, simulation):
    arm = make_arm(JOINT_TRAJECTORY)
    arm.on_trajectory(JOINT_NAMES, goal(arm, 1.0, 5.0), 0)
    run(arm, 1.0)
    arm.reset(4)
    start = measured(arm)
    run(arm, 1.0)
    np.testing.assert_allclose(measured(arm), start, atol=1e-6)
    simulation.reset(4)
    np.testing.assert_array_equal(start, simulation.joint_positions())


def test_refusals_are_counted_and_the_last_one_remembered(make_arm):
    arm = make_arm(JOINT_TRAJECTORY)
    for _ in range(3):
        arm.on_trajectory(JOINT_NAMES[:5], goal(arm, 0.1, 1.0), 0)
    arm.on_trajectory(JOINT_NAMES, goal(arm, 0.1, 1.0), 0)
    assert arm.rejected[JOINT_TRAJECTORY] == 3
    assert arm.accepted[JOINT_TRAJECTORY] == 1
    assert arm.last_rejection != ""


def test_an_unknown_controller_is_refused_with_the_known(simulation):
    with pytest.raises(ValueError, match="'effort'.*joint_trajectory, forward_position"):
        ControlledArm(simulation, "effort")


def test_short_trajectories_streamed_at_50_hz_are_followed_smoothly(make_arm):
    arm = make_arm(JOINT_TRAJECTORY, interpolate_from_desired_state=True)
    start = measured(arm)
    velocity = 0.4 * np.eye(6)[0]
    speeds = []
    for tick in range(1, 76):
        rows = [
            TrajectoryPoint(start + velocity * 0.02 * (tick + k), velocity, (), k * 20_000_000 + 1)
            for k in range(3)
        ]
        rows.append(TrajectoryPoint(rows[-1].positions, [0.0] * 6, (), 80_000_000))
        assert arm.on_trajectory(JOINT_NAMES, rows, 0) is None
        run(arm, 0.02)
        speeds.append(arm.joint_state()[1][0])
    np.testing.assert_allclose(speeds[50:], 0.4, atol=0.01)
