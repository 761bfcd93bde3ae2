# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One trial: what is said when, and what is judged. The graph here is a simulation without ROS."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("mujoco")

from omni_ros.cli import tabletop_episode  # noqa: E402
from omni_ros.cli.tabletop_episode import Scenes, check_chunks, run_trial  # noqa: E402
from omni_ros.cli.tabletop_trials import Result, Trial  # noqa: E402
from omni_ros.world import expert  # noqa: E402
from omni_ros.world.scene import BLOCK_NAMES, PAD_NAME  # noqa: E402
from omni_ros.world.simulation import Simulation  # noqa: E402
from omni_ros.world.tasks import task_of  # noqa: E402

TRIAL = Trial(300_000, "touch", "red", "red", "touch the red block")


class Graph:
    """A world that does at once what the sentence says, or nothing."""

    def __init__(self, obedient: bool = True) -> None:
        self.simulation = Simulation(width=16, height=16)
        self.said: list[str] = []
        self.chunks: list[object] = []
        self.obedient = obedient

    @property
    def joints(self):
        return SimpleNamespace(name=self.simulation.joint_names,
                               position=self.simulation.joint_positions())

    def begin(self, seed):
        self.simulation.reset(seed)
        self.said.append("")

    def tell(self, sentence):
        self.said.append(sentence)

    def look(self):
        objects = dict(zip(BLOCK_NAMES, self.simulation.block_positions()))
        objects[PAD_NAME] = np.append(self.simulation.pad_position(), 0.0)
        return SimpleNamespace(seconds=self.simulation.time, tip=self.simulation.tip(),
                               touched=self.simulation.touched(), objects=objects)

    def spin(self, seconds):
        task = task_of(self.said[-1])
        if task and self.obedient:
            simulation = self.simulation
            yaws = np.array([[simulation.block_yaw(name) for name in BLOCK_NAMES]])
            rows = expert.plan(
                simulation.joint_positions()[None], simulation.block_positions()[None], yaws,
                simulation.pad_position()[None], np.array([task.skill_index]),
                np.array([task.block_index])).rows[0]
            simulation.command_position(rows[0])
        self.chunks.append(object())
        self.simulation.step(26)

    def complaint(self):
        return "vision_encoder: waiting for front"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(tabletop_episode, "LOOK_HZ", 1e6)


@pytest.fixture(scope="module")
def scenes():
    return Scenes()


def test_a_policy_that_does_what_it_is_told_succeeds(scenes):
    result = run_trial(Graph(), TRIAL, scenes)
    assert (result.verdict, result.told_verdict) == ("success", "success")
    assert 0.5 < result.seconds < 4.0 and result.chunks > 0


def test_a_policy_that_does_nothing_runs_out_of_time(scenes):
    assert run_trial(Graph(obedient=False), TRIAL, scenes).verdict == "timeout"


def test_a_swapped_sentence_is_judged_by_both_colours(scenes):
    swapped = Trial(300_000, "touch", "red", "green", "touch the green block")
    result = run_trial(Graph(), swapped, scenes)
    assert (result.verdict, result.told_verdict) == ("wrong", "success")


def test_an_expert_is_told_the_scene_and_served_at_every_look(scenes):
    graph, served = Graph(), []

    def begin(yaws, pad):
        assert yaws.shape == (4,)
        assert np.array_equal(pad, graph.simulation.pad_position())

    expert_source = SimpleNamespace(begin=begin, serve=lambda task, look: served.append(task))
    run_trial(graph, TRIAL, scenes, expert_source)
    assert served[0] is None and set(served[1:]) == {task_of(TRIAL.sentence)}


def test_no_sentence_stands_before_and_after_a_trial(scenes):
    graph = Graph()
    run_trial(graph, TRIAL, scenes)
    assert graph.said == ["", TRIAL.sentence, ""]


@pytest.mark.parametrize("chunks, stops", [
    ([0], True), ([5, 0], False), ([5, 0, 0], True), ([5, 0, 3], False), ([], False)])
def test_a_bench_ends_where_no_chunks_come_but_not_over_a_moment_without(chunks, stops):
    results = [Result(TRIAL, "timeout", "timeout", 6.0, count) for count in chunks]
    if not stops:
        return check_chunks(results, Graph())
    with pytest.raises(RuntimeError, match="no chunk came.*vision_encoder: waiting for front"):
        check_chunks(results, Graph())


def test_the_scene_of_a_seed_is_that_of_the_world(scenes):
    simulation = Simulation(width=16, height=16, seed=7)
    yaws, pad = scenes.of(7)
    assert yaws[2] == simulation.block_yaw("block_blue")
    assert np.array_equal(pad, simulation.pad_position())
