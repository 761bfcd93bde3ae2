# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The scripted expert does every task, from any state, within the robot's limits."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.world import expert
from omni_ros.world.judge import Judge, Verdict
from omni_ros.world.scene import BLOCK_NAMES, JOINT_LOWER, JOINT_UPPER
from omni_ros.world.simulation import Simulation
from omni_ros.world.tasks import COLOURS, SKILLS, Task

STEPS = 27  # of physics, a row


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return Simulation()


def plan(simulation: Simulation, task: Task, rows: int = 16) -> expert.Plan:
    yaws = [simulation.block_yaw(name) for name in BLOCK_NAMES]
    return expert.plan(
        simulation.joint_positions()[None], simulation.block_positions()[None], [yaws],
        simulation.pad_position()[None], [task.skill_index], [task.block_index], rows=rows,
    )


def perform(simulation: Simulation, task: Task, horizon: int) -> Verdict:
    """Let the expert do a task, thinking again every `horizon` rows; return the verdict."""
    judge = Judge(task, simulation.object_positions(), pad=simulation.pad_position(),
                  start_s=simulation.time)
    row = 0
    while judge.verdict is Verdict.RUNNING:
        if row % horizon == 0:
            rows = plan(simulation, task, horizon).rows[0]
        start, target = simulation.target, rows[row % horizon]
        for share in (1 / 3, 2 / 3, 1.0):
            simulation.command_position(start + share * (target - start))
            simulation.step(STEPS // 3)
        judge.update(simulation.time, tip=simulation.tip(), blocks=simulation.object_positions(),
                     touched=simulation.touched(), gripper=simulation.joint_positions()[5])
        row += 1
    return judge.verdict


@pytest.mark.parametrize("horizon", [1, 8])
@pytest.mark.parametrize("skill", SKILLS)
@pytest.mark.parametrize("seed", [2001, 2002])
def test_the_expert_does_each_task(simulation, skill, horizon, seed):
    simulation.reset(seed)
    task = Task(skill, COLOURS[seed % 4])
    assert perform(simulation, task, horizon) is Verdict.SUCCESS


def test_a_block_that_was_not_asked_for_is_put_down_first(simulation):
    simulation.reset(2003)
    assert perform(simulation, Task("pick_up", "red"), 4) is Verdict.SUCCESS
    assert perform(simulation, Task("pick_up", "blue"), 4) is Verdict.SUCCESS
    assert simulation.block_positions()[0, 2] < 0.02


@pytest.fixture(scope="module")
def anywhere() -> expert.Plan:
    """Plans from 600 random states, most of them far from any that an episode would show."""
    random = np.random.default_rng(5)
    count = 600
    blocks = np.stack([
        np.stack([random.uniform(0.10, 0.26, 4), random.uniform(-0.2, 0.2, 4),
                  np.full(4, 0.015)], axis=-1) for _ in range(count)
    ])
    joints = random.uniform(JOINT_LOWER, JOINT_UPPER, (count, 6))
    plan = expert.plan(
        joints, blocks, random.uniform(-np.pi, np.pi, (count, 4)),
        random.uniform([0.15, -0.15], [0.25, 0.15], (count, 2)),
        random.integers(3, size=count), random.integers(4, size=count),
    )
    rows = np.concatenate([joints[:, None], plan.rows], axis=1)
    return expert.Plan(rows, plan.phase)


def test_targets_never_ask_for_more_than_3_rad_per_second(anywhere):
    assert np.abs(np.diff(anywhere.rows, axis=1)).max() * expert.RATE_HZ <= 3.0


def test_targets_lie_within_the_joint_ranges(anywhere):
    assert np.isfinite(anywhere.rows).all()
    assert (anywhere.rows >= JOINT_LOWER - 1e-9).all()
    assert (anywhere.rows <= JOINT_UPPER + 1e-9).all()


def test_many_states_at_once_are_planned_as_one_by_one(simulation):
    tasks = [Task(skill, colour) for skill in SKILLS for colour in COLOURS]
    simulation.reset(11)
    alone = [plan(simulation, task).rows[0] for task in tasks]
    n = len(tasks)
    yaws = [simulation.block_yaw(name) for name in BLOCK_NAMES]
    together = expert.plan(
        np.tile(simulation.joint_positions(), (n, 1)),
        np.tile(simulation.block_positions(), (n, 1, 1)), np.tile(yaws, (n, 1)),
        np.tile(simulation.pad_position(), (n, 1)),
        [task.skill_index for task in tasks], [task.block_index for task in tasks],
    )
    np.testing.assert_allclose(together.rows, alone, atol=1e-12)


def test_the_same_state_gives_the_same_plan_whatever_came_before(simulation):
    task = Task("pick_up", "green")
    simulation.reset(12)
    first = plan(simulation, task).rows
    plan(simulation, Task("place", "red"))
    np.testing.assert_array_equal(plan(simulation, task).rows, first)
