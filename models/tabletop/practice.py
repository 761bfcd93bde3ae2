# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The policy in the world while it trains: to see how it does, and to learn from where it gets."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from omni_ros.world.appearance import PLAIN, VARIED
from omni_ros.world.tasks import COLOURS, SKILLS, Task, phrase

from . import closed_loop, data
from .episode import Tabletop

#: Seeds of the curve's episodes; final measurements use others, and so do the frames.
CURVE_SEEDS = 100_000
OWN_SEEDS = 300_000


@dataclass
class Progress:
    """Where a run stands, and its curve."""

    step: int = 0
    seconds: float = 0.0
    own_filled: int = 0
    own_next: int = 0
    own_seed: int = OWN_SEEDS
    curve: list[dict[str, float]] = field(default_factory=list)


class Practice:
    """A number of tables that are used again and again."""

    def __init__(self, episodes: int) -> None:
        """:param episodes: side by side, and of each skill at each evaluation."""
        self.episodes = episodes
        self._worlds: list[Tabletop] = []

    def tables(self, mode: str) -> list[Tabletop]:
        """Return the tables, made at first use, with an appearance."""
        while len(self._worlds) < self.episodes:
            self._worlds.append(Tabletop())
        for world in self._worlds:
            world.simulation.appearance.mode = mode
        return self._worlds

    def evaluate(self, policy: closed_loop.Policy) -> dict[str, float]:
        """Return each skill's shares on the curve's seeds, every chunk one row late."""
        count, found = self.episodes, {}
        for number, skill in enumerate(SKILLS):
            tasks = [Task(skill, COLOURS[i % len(COLOURS)]) for i in range(count)]
            seeds = [CURVE_SEEDS + 1000 * number + i for i in range(count)]
            sentences = [phrase(task, i // len(COLOURS)) for i, task in enumerate(tasks)]
            shares = closed_loop.shares(closed_loop.run(
                policy, self.tables(PLAIN), tasks, seeds, sentences, horizon=8, delay=1,
            ))
            found[f"{skill}_success"] = shares["success"] / count
            found[f"{skill}_wrong"] = shares["wrong"] / count
            found[f"{skill}_seconds"] = shares["seconds"]
        return found

    def collect(self, policy: closed_loop.Policy, frames: data.Frames, state: Progress) -> None:
        """Run episodes and keep about every other row, over the oldest once `frames` is full."""
        random = np.random.default_rng(state.own_seed)
        count = self.episodes
        tasks = [Task(str(random.choice(SKILLS, p=data.SKILL_SHARES)), str(random.choice(COLOURS)))
                 for _ in range(count)]

        def keep(world: Tabletop, i: int) -> None:
            if random.random() < 0.5:
                task = tasks[i]
                data.record(frames, state.own_next, world, task.skill_index, task.block_index)
                state.own_next = (state.own_next + 1) % len(frames)
                state.own_filled = min(state.own_filled + 1, len(frames))

        closed_loop.run(
            policy, self.tables(str(random.choice([PLAIN, VARIED]))), tasks,
            [state.own_seed + i for i in range(count)], [phrase(task, random) for task in tasks],
            horizon=int(random.choice([4, 8, 12])), delay=int(random.integers(0, 3)), observer=keep,
        )
        state.own_seed += count
