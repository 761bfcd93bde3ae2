# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Frames to train on: what the cameras and joints say, and where everything really is.

No action is stored. The expert labels any frame for any task when a batch is made, so one frame
teaches every instruction; what was executed only decides which states come up.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from omni_ros.world import expert, kinematics
from omni_ros.world.appearance import PLAIN, VARIED
from omni_ros.world.scene import BLOCK_NAMES, CUBE_SIDE, JOINT_LOWER, JOINT_UPPER
from omni_ros.world.tasks import SKILLS

from .episode import CAMERAS, IMAGE, Tabletop

OBJECTS = len(BLOCK_NAMES) + 1  # the blocks, then the pad

FIELDS: dict[str, tuple[tuple[int, ...], str]] = {
    "images": ((len(CAMERAS), IMAGE, IMAGE, 3), "uint8"),
    "joints": ((6,), "float32"),
    "blocks": ((4, 3), "float32"),
    "yaws": ((4,), "float32"),
    "pad": ((2,), "float32"),
    "pixels": ((len(CAMERAS), OBJECTS, 2), "float32"),  # x right, y down
    "skill": ((), "int8"),  # executed
    "target": ((), "int8"),
    "varied": ((), "int8"),  # whether the scene looked other than built
}
SKILL_SHARES = (0.25, 0.40, 0.35)
NOISE, CORRELATION = 0.03, 0.8
ROWS_PER_LAYOUT = 110


@dataclass
class Frames:
    """Arrays (n, ...) by the names of ``FIELDS``, mapped from files."""

    arrays: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.arrays["joints"])

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self.arrays[name]
        except KeyError:
            raise AttributeError(name) from None


def create(folder: Path, count: int) -> Frames:
    """Make files for a number of frames."""
    folder.mkdir(parents=True, exist_ok=True)
    return Frames({
        name: np.lib.format.open_memmap(
            folder / f"{name}.npy", mode="w+", dtype=kind, shape=(count, *shape)
        )
        for name, (shape, kind) in FIELDS.items()
    })


def load(folder: Path, mode: str = "r") -> Frames:
    """Map the files of ``create``."""
    return Frames({name: np.load(folder / f"{name}.npy", mmap_mode=mode) for name in FIELDS})


def record(frames: Frames, index: int, world: Tabletop, skill: int, target: int) -> None:
    """Store what is seen and true now as frame `index`."""
    blocks, yaws, pad = world.truth()
    world.images(frames.images[index])
    frames.joints[index] = world.joints()
    frames.blocks[index], frames.yaws[index], frames.pad[index] = blocks, yaws, pad
    points = np.concatenate([blocks + [0, 0, CUBE_SIDE / 2], [[*pad, 0.0]]])
    for camera, name in enumerate(CAMERAS):
        frames.pixels[index, camera] = world.simulation.project(name, points)
    frames.skill[index], frames.target[index] = skill, target
    frames.varied[index] = world.simulation.appearance.mode == VARIED


def start(world: Tabletop, random: np.random.Generator) -> None:
    """Begin a layout: by the episodes' rules, or with the arm anywhere above the table."""
    world.simulation.appearance.mode = VARIED if random.random() < 0.5 else PLAIN
    world.reset(int(random.integers(2**31)))
    if random.random() < 0.35:
        reach, angle = random.uniform(0.13, 0.29), random.uniform(-1.0, 1.0)
        height = random.uniform(0.05, 0.18)
        joints = kinematics.inverse(
            np.array([reach * np.cos(angle), reach * np.sin(angle), height]),
            tilt=float(expert.grasp_tilt(np.array(reach), np.array(height)))
            + random.normal() * 0.1,
            roll=random.uniform(-1.0, 1.0), gripper=random.uniform(-0.1, 0.9), strict=False,
        )
        world.simulation.place_arm(np.clip(joints, JOINT_LOWER, JOINT_UPPER))
        world.settle()


def lost(blocks: np.ndarray) -> bool:
    """Return whether a block (4, 3) has left the table's useful part."""
    reach = np.hypot(blocks[:, 0], blocks[:, 1])
    return bool(
        (reach < 0.12).any() or (reach > 0.31).any() or (blocks[:, 2] < 0.0).any()
        or (np.abs(np.arctan2(blocks[:, 1], blocks[:, 0])) > 1.0).any()
    )


def generate(frames: Frames, first: int, last: int, seed: int,
             done: Callable[[int], None] = lambda count: None) -> None:
    """Fill frames `first` to `last` (exclusive) with the expert's ways, disturbed.

    Tasks follow one another in one layout, some cut short; commands carry correlated noise, which
    takes the arm to states that the expert alone would never show.
    """
    random = np.random.default_rng(seed)
    world = Tabletop()
    index = first
    while index < last:
        start(world, random)
        amount = random.choice([0.0, 0.5, 1.0]) * NOISE
        horizon = int(random.choice([1, 4, 8]))
        noise = np.zeros(6)
        task_rows = rows_left = 0
        for row in range(ROWS_PER_LAYOUT):
            if rows_left <= 0:
                skill = int(random.choice(len(SKILLS), p=SKILL_SHARES))
                target = int(random.integers(len(BLOCK_NAMES)))
                usual = (26, 48, 74)[skill]
                rows_left = usual if random.random() < 0.6 else int(random.integers(6, usual))
                task_rows = 0
            record(frames, index, world, skill, target)
            index += 1
            done(1)
            if index == last:
                return
            if task_rows % horizon == 0:
                blocks, yaws, pad = world.truth()
                plan = expert.plan(world.joints()[None], blocks[None], yaws[None], pad[None],
                                   [skill], [target], rows=horizon)
            delicate = expert.PHASES[int(plan.phase[0])] not in ("travel", "carry", "stay")
            noise = CORRELATION * noise + random.normal(size=6) * amount * (1 - CORRELATION**2)**0.5
            world.row(plan.rows[0, task_rows % horizon] + noise * (0.35 if delicate else 1.0))
            task_rows += 1
            rows_left -= 1
            if row % 8 == 0 and lost(world.simulation.block_positions()):
                break


def _work(folder: str, first: int, last: int, seed: int, counter) -> None:
    def done(count: int) -> None:
        with counter.get_lock():
            counter.value += count

    generate(load(Path(folder), "r+"), first, last, seed, done)


def generate_all(folder: Path, count: int, *, seed: int, processes: int,
                 progress: Callable[[int], None]) -> None:
    """Fill a folder with `count` frames; the same count, seed and processes give the same ones."""
    create(folder, count)
    context = multiprocessing.get_context("spawn")  # a drawing context does not survive a fork
    counter = context.Value("q", 0)
    edges = np.linspace(0, count, processes + 1).astype(int)
    workers = [
        context.Process(target=_work, args=(str(folder), int(a), int(b), seed * 1000 + i, counter))
        for i, (a, b) in enumerate(zip(edges[:-1], edges[1:], strict=True))
    ]
    for worker in workers:
        worker.start()
    try:
        while any(worker.is_alive() for worker in workers):
            workers[0].join(0.5)
            for worker in workers:
                worker.join(0.05)
            progress(counter.value)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
    failed = [worker.exitcode for worker in workers if worker.exitcode]
    if failed:
        raise RuntimeError(f"making frames failed (exit status {failed}); see the output above")
