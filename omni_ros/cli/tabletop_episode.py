# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One trial in a graph that stands: from the reset to the judge's verdict.

Works on anything that behaves as `tabletop_graph.TabletopGraph` does.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from omni_ros.cli.tabletop_trials import TIMEOUT, Result, Trial
from omni_ros.world.judge import Judge, Verdict
from omni_ros.world.scene import BLOCK_NAMES, PAD_NAME
from omni_ros.world.simulation import Simulation
from omni_ros.world.tasks import Task

#: Looks at the world a second. A judge wants ten at least.
LOOK_HZ = 30.0
GRIPPER = "gripper"


class Scenes:
    """What an episode of a seed begins with, and the world's services leave out."""

    def __init__(self) -> None:
        self._simulation = Simulation(width=16, height=16)

    def of(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the blocks' yaws (4,) in radians, and the centre of the pad (2,) in metres."""
        self._simulation.reset(seed)
        yaws = np.array([self._simulation.block_yaw(name) for name in BLOCK_NAMES])
        return yaws, self._simulation.pad_position().copy()


def run_trial(
    graph: Any, trial: Trial, scenes: Scenes, expert: Any = None
) -> Result:
    """Run one trial and return what came of it.

    :param expert: an ExpertSource that moves the arm; None where policy nodes do.
    """
    graph.begin(trial.seed)
    yaws, pad = scenes.of(trial.seed)
    look = graph.look()
    pad = look.objects.get(PAD_NAME, pad)[:2]
    judged, told = (Task(trial.skill, colour) for colour in (trial.colour, trial.told))
    judges = [Judge(task, look.objects, pad=pad, start_s=look.seconds) for task in (judged, told)]
    if expert is not None:
        expert.begin(yaws, pad)
        expert.serve(None, look)
    chunks = len(graph.chunks)
    graph.tell(trial.sentence)
    follow(graph, judges, expert, told)
    graph.tell("")
    first, second = judges
    return Result(trial, word(first), word(second), second.seconds, len(graph.chunks) - chunks,
                  first.reason)


def check_chunks(results: list[Result], graph: Any) -> None:
    """Refuse to go on where no chunks come: that says nothing of the policy's skill.

    One trial without any may be the machine, which stood still for a while; it counts as it is.

    :raises RuntimeError: the first, or the last two trials had none; the message says what the nodes
        say.
    """
    last = results[-2:] if len(results) > 1 else results
    if last and not any(result.chunks for result in last):
        raise RuntimeError(f"no chunk came after {last[-1].trial.sentence!r} was said; "
                           f"{graph.complaint()}")


def follow(graph: Any, judges: list[Judge], expert: Any = None, task: Task | None = None,
           seconds: float | None = None) -> None:
    """Look at the world and have it judged until every judge has decided, or for some time.

    :param expert, task: an ExpertSource to serve meanwhile, and what it is to do.
    """
    end = None if seconds is None else time.monotonic() + seconds
    due = time.monotonic()
    while end is None or due < end:
        look = graph.look()
        joints = graph.joints
        positions = {} if joints is None else dict(zip(joints.name, joints.position))
        for judge in judges:
            judge.update(look.seconds, tip=look.tip, blocks=look.objects, touched=look.touched,
                         gripper=positions.get(GRIPPER, 0.0))
        if judges and all(judge.verdict is not Verdict.RUNNING for judge in judges):
            return
        if expert is not None:
            expert.serve(task, look)
        due = max(due + 1.0 / LOOK_HZ, time.monotonic())
        graph.spin(due - time.monotonic())


def word(judge: Judge) -> str:
    """Return a verdict as it is counted: success, wrong or timeout."""
    return TIMEOUT if judge.verdict is Verdict.RUNNING else judge.verdict.name.lower()
