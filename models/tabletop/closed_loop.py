# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Closed-loop evaluation outside ROS: many tables side by side, one batched policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from omni_ros.world.judge import Verdict
from omni_ros.world.tasks import Task

from .episode import Tabletop

#: images uint8 [n, cameras, height, width, 3], joints [n, 6], sentences -> rows [n, chunk, 6] rad.
Policy = Callable[[np.ndarray, np.ndarray, list[str]], np.ndarray]
#: Called with (world, index of the episode) before each row.
Observer = Callable[[Tabletop, int], None]


@dataclass(frozen=True)
class Outcome:
    """How an episode went."""

    task: Task
    seed: int
    sentence: str
    verdict: Verdict
    reason: str
    seconds: float
    closest: float


@dataclass
class _Episode:
    world: Tabletop
    judge: object
    playing: np.ndarray | None = None
    coming: np.ndarray | None = None
    row: int = 0
    since: int = 0


def run(
    policy: Policy, worlds: Sequence[Tabletop], tasks: Sequence[Task], seeds: Sequence[int],
    sentences: Sequence[str], *, horizon: int, delay: int = 0, judged: Sequence[Task] | None = None,
    blank: bool = False, observer: Observer | None = None,
) -> list[Outcome]:
    """Run one episode for each task; as many at a time as there are worlds.

    :param horizon: rows played of a chunk before the next observation's takes over.
    :param delay: rows that pass between an observation and its chunk; the old one plays on.
    :param judged: tasks to judge by instead of those that were asked for.
    :param blank: show the policy black pictures.
    """
    judged = tasks if judged is None else judged
    outcomes: list[Outcome | None] = [None] * len(tasks)
    for first in range(0, len(tasks), len(worlds)):
        index = list(range(first, min(first + len(worlds), len(tasks))))
        episodes = {}
        for slot, i in enumerate(index):
            worlds[slot].reset(seeds[i])
            episodes[i] = _Episode(worlds[slot], worlds[slot].judge(judged[i]))
        step = 0
        while episodes:
            if step % horizon == 0:
                infer(policy, episodes, sentences, blank)
            for i, episode in list(episodes.items()):
                if observer is not None:
                    observer(episode.world, i)
                play(episode, delay)
                verdict = episode.world.ask(episode.judge)
                if verdict is not Verdict.RUNNING:
                    judge = episode.judge
                    outcomes[i] = Outcome(judged[i], seeds[i], sentences[i], verdict, judge.reason,
                                          judge.seconds, judge.closest)
                    del episodes[i]
            step += 1
    return [outcome for outcome in outcomes if outcome is not None]


def infer(policy: Policy, episodes: dict[int, _Episode], sentences, blank: bool) -> None:
    images = np.stack([episode.world.images() for episode in episodes.values()])
    if blank:
        images[:] = 0
    joints = np.stack([episode.world.joints() for episode in episodes.values()])
    chunks = policy(images, joints, [sentences[i] for i in episodes])
    for episode, chunk in zip(episodes.values(), chunks, strict=True):
        episode.coming, episode.since = chunk, 0


def play(episode: _Episode, delay: int) -> None:
    """Play one row: of the new chunk as soon as it is there, each row at its own time."""
    if episode.coming is not None and episode.since >= delay:
        episode.playing, episode.row, episode.coming = episode.coming, episode.since, None
    episode.since += 1
    if episode.playing is None:  # the first chunk is not there yet
        episode.world.row(episode.world.command)
        return
    episode.world.row(episode.playing[min(episode.row, len(episode.playing) - 1)])
    episode.row += 1


def shares(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return counts, and mean seconds of the successes."""
    good = [outcome.seconds for outcome in outcomes if outcome.verdict is Verdict.SUCCESS]
    return {
        "episodes": len(outcomes), "success": len(good),
        "wrong": sum(outcome.verdict is Verdict.WRONG for outcome in outcomes),
        "seconds": float(np.mean(good)) if good else float("nan"),
    }
