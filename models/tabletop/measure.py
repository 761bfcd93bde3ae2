# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Measure a trained policy in the closed loop, outside ROS.

    python -m omni_ros.models.tabletop.measure CHECKPOINT [--bundle BUNDLE] --out results.json

Every case runs on seeds that neither training nor its curve used. Results are kept case by case, so
an interrupted measurement goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from omni_ros.world.appearance import PLAIN, VARIED
from omni_ros.world.expert import RATE_HZ
from omni_ros.world.tasks import COLOURS, SKILLS, Task, phrase

from . import closed_loop
from .eager import from_checkpoint
from .episode import CAMERAS, Tabletop

FINAL_SEEDS = 200_000
TABLES = 25


@dataclass(frozen=True)
class Case:
    """What is measured.

    :param control: "" none; "swap": the sentence names the next colour, judged by the first;
        "told": the same episodes, judged by what the sentence says; "blank": black pictures.
    """

    skill: str
    episodes: int = 100
    horizon: int = 8
    delay: int = 1
    held_out: bool = False
    appearance: str = PLAIN
    control: str = ""

    @property
    def name(self) -> str:
        parts = [self.skill, f"{self.horizon} of 16", f"delay {self.delay}"]
        parts += ["held-out sentences"] if self.held_out else []
        parts += [self.appearance] if self.appearance != PLAIN else []
        parts += [self.control] if self.control else []
        return ", ".join(parts)


def cases(episodes: int) -> list[Case]:
    """Return all that a full measurement takes, the most wanted first."""
    found = [Case(skill, episodes) for skill in SKILLS]
    found += [Case(skill, episodes, held_out=True) for skill in SKILLS]
    found += [Case(skill, episodes, appearance=VARIED) for skill in SKILLS]
    found += [Case("touch", episodes, control=control) for control in ("swap", "told", "blank")]
    found += [Case(skill, episodes, horizon=horizon) for horizon in (4, 16) for skill in SKILLS]
    found += [Case(skill, episodes, delay=delay) for delay in (0, 2) for skill in SKILLS]
    return found


def measure(
    policy: closed_loop.Policy, worlds: Sequence[Tabletop], case: Case, first_seed: int = FINAL_SEEDS
) -> dict:
    """Run a case and return counts."""
    random = np.random.default_rng(7)
    asked, judged, seeds, sentences = [], [], [], []
    for i in range(case.episodes):
        task = Task(case.skill, COLOURS[i % len(COLOURS)])
        other = Task(case.skill, COLOURS[(i + 1) % len(COLOURS)])
        told = other if case.control in ("swap", "told") else task
        asked.append(told)
        judged.append(task if case.control == "swap" else told)
        seeds.append(first_seed + 10_000 * SKILLS.index(case.skill) + i)
        sentences.append(phrase(told, random, held_out=case.held_out))
    for world in worlds:
        world.simulation.appearance.mode = case.appearance
    begun = time.monotonic()
    outcomes = closed_loop.run(policy, worlds, asked, seeds, sentences, horizon=case.horizon,
                               delay=case.delay, judged=judged, blank=case.control == "blank")
    result = closed_loop.shares(outcomes)
    result["seconds"] = None if np.isnan(result["seconds"]) else round(result["seconds"], 2)
    result["failed"] = [
        [o.seed, o.sentence, o.verdict.value, o.reason, round(o.closest, 3)]
        for o in outcomes if o.verdict.value != "success"
    ]
    result["wall_s"] = round(time.monotonic() - begun, 1)
    return result


def bundle_policy(folder: Path) -> closed_loop.Policy:
    """Return a policy that runs an exported bundle, one observation after another."""
    from omni_ros.policy.observation import Observation
    from omni_ros.policy.smolvla import SmolVLAPolicy

    policy, count = SmolVLAPolicy(folder, threads=1), [0]

    def act(images: np.ndarray, joints: np.ndarray, texts: list[str]) -> np.ndarray:
        chunks = []
        for pictures, position, text in zip(images, joints, texts, strict=True):
            count[0] += 1
            observation = Observation(dict(zip(CAMERAS, pictures, strict=True)),
                                      position.astype(np.float32),
                                      int(count[0] * 1e9 / RATE_HZ))
            chunks.append(policy.infer(observation, text, seed=0).actions)
        return np.stack(chunks)

    return act


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--bundle", type=Path, help="run this export instead of PyTorch")
    parser.add_argument("--out", type=Path, required=True, help="JSON, extended case by case")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--first", type=int, help="only the first so many cases")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many cases at the start")
    options = parser.parse_args()
    torch.set_num_threads(1)
    policy = bundle_policy(options.bundle) if options.bundle else from_checkpoint(
        options.checkpoint
    )
    worlds = [Tabletop() for _ in range(min(TABLES, options.episodes))]
    results = json.loads(options.out.read_text()) if options.out.is_file() else {}
    for case in cases(options.episodes)[options.skip:options.first]:
        if case.name in results:
            continue
        result = measure(policy, worlds, case)
        results[case.name] = {"case": asdict(case), **result}
        options.out.write_text(json.dumps(results, indent=1))
        print(f"{case.name}: {result['success']} of {result['episodes']}, wrong {result['wrong']}, "
              f"{result['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
