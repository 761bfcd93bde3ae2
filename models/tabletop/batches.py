# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Batches: frames, and for each of them several instructions with what the expert would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from omni_ros.world import expert
from omni_ros.world.scene import BLOCK_NAMES
from omni_ros.world.tasks import COLOURS, SKILLS, Task

from .data import OBJECTS, Frames
from .episode import CAMERAS, IMAGE
from .sizes import CELLS, CONFIG
from .words import Sentences

#: How often a task that was not executed is of each skill.
SKILL_SHARES = (0.30, 0.38, 0.32)
#: How often one of a frame's instructions is what was executed: its states are the delicate ones,
#: but were it all that is taught, the state alone would tell what to do.
EXECUTED_SHARE = 0.65
#: How many of the frames with varied looks are used.
VARIED_SHARE = 0.45
JOINT_JITTER = 0.004
CAMERA_DROP = 0.03
#: Block places as the auxiliary head has them: about zero mean, unit spread.
PLACE_MEAN, PLACE_STD = (0.20, 0.0, 0.02), (0.05, 0.10, 0.03)


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of joints and of the expert's targets, each (6,) float32."""

    state_mean: np.ndarray
    state_std: np.ndarray
    action_mean: np.ndarray
    action_std: np.ndarray


@dataclass
class Look:
    """b frames, and where in them things are."""

    pixels: torch.Tensor  # [b, cameras, 3, height, width] in [-1, 1]
    cell: torch.Tensor  # [b, cameras, objects]: which token holds it; -1 if it is not in sight
    offset: torch.Tensor  # [b, cameras, objects, 2]: from the cell's centre, cells
    turn: torch.Tensor  # [b, cameras, blocks, 2]: cosine and sine of four times the yaw


@dataclass
class Batch(Look):
    """Besides, m instructions for each frame; n = b * m, frame by frame."""

    present: torch.Tensor  # bool [b, cameras]
    state: torch.Tensor  # [b, 6] normalised
    ids: torch.Tensor  # [n, longest]
    mask: torch.Tensor
    actions: torch.Tensor  # [n, chunk, 6] normalised
    target: torch.Tensor  # [n]: index of the instructed block
    skill: torch.Tensor  # [n]
    phase: torch.Tensor  # [n]
    place: torch.Tensor  # [n, 3] of the instructed block, scaled
    pad: torch.Tensor  # [n, 2], scaled
    relative: torch.Tensor  # [n, 2]: cosine and sine of four times its yaw, seen from the hand


def statistics(frames: Frames, random: np.random.Generator, count: int = 4000) -> Statistics:
    """Measure over random frames and tasks."""
    rows = np.sort(random.integers(len(frames), size=count))
    joints = frames.joints[rows]
    plan = expert.plan(
        joints, frames.blocks[rows], frames.yaws[rows], frames.pad[rows],
        random.choice(len(SKILLS), p=SKILL_SHARES, size=count),
        random.integers(len(BLOCK_NAMES), size=count),
    )
    flat = plan.rows.reshape(-1, 6)
    return Statistics(*(
        values.astype(np.float32)
        for values in (joints.mean(0), joints.std(0), flat.mean(0), flat.std(0))
    ))


def to_pixels(images: np.ndarray) -> torch.Tensor:
    """uint8 [..., height, width, 3] to float32 [..., 3, height, width] in [-1, 1]."""
    return torch.from_numpy(images).movedim(-1, -3).float() / 127.5 - 1.0


def jittered(pixels: torch.Tensor, random: np.random.Generator) -> torch.Tensor:
    """Change brightness, contrast and tint of each picture, and add a little noise."""
    shape = (*pixels.shape[:2], 1, 1, 1)
    contrast = torch.from_numpy(random.uniform(0.8, 1.2, shape).astype(np.float32))
    light = torch.from_numpy(random.uniform(-0.12, 0.12, shape).astype(np.float32))
    tint = torch.from_numpy(random.normal(0, 0.04, (*pixels.shape[:3], 1, 1)).astype(np.float32))
    grain = torch.from_numpy(random.standard_normal(pixels.shape, dtype=np.float32)) * 0.015
    return ((pixels + light + tint) * contrast + grain).clamp(-1.0, 1.0)


def seen(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return cell (-1 where not in the picture) and offset of pixel places [..., 2]."""
    side = IMAGE / CELLS
    place = (pixels + 0.5) / side
    inside = ((place >= 0) & (place < CELLS)).all(-1)
    whole = np.clip(np.floor(place), 0, CELLS - 1)
    cell = np.where(inside, whole[..., 1] * CELLS + whole[..., 0], -1).astype(np.int64)
    return cell, np.where(inside[..., None], place - whole - 0.5, 0.0).astype(np.float32)


class BatchMaker:
    """Makes batches of the frames of several sets."""

    def __init__(
        self, sets: Sequence[tuple[Frames, int]], statistics: Statistics, sentences: Sentences,
        *, frames: int, instructions: int, seed: int,
    ) -> None:
        """:param sets: frames and how many of them are filled. :param frames: in a batch."""
        self.sets = list(sets)
        self.shares = [1.0] * len(self.sets)
        self._statistics, self._sentences = statistics, sentences
        self.frames, self.instructions = frames, instructions
        self._random = np.random.default_rng(seed)

    def gather(self, count: int) -> dict[str, np.ndarray]:
        """Return the fields of random frames."""
        random, total = self._random, sum(self.shares)
        which = random.choice(len(self.sets), p=[s / total for s in self.shares], size=count)
        parts = []
        for index, (frames, filled) in enumerate(self.sets):
            count = int((which == index).sum())
            if count:
                rows = random.integers(filled, size=2 * count)
                skipped = frames.varied[rows].astype(bool) & (random.random(2 * count)
                                                              > VARIED_SHARE)
                rows = np.sort(rows[np.argsort(skipped, kind="stable")[:count]])
                parts.append({name: values[rows] for name, values in frames.arrays.items()})
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def looks(self, fields: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
        """Return the fields of a ``Look``."""
        cell, offset = seen(fields["pixels"])
        hand = fields["joints"][:, 0] + fields["joints"][:, 4]
        yaw = np.stack([fields["yaws"], fields["yaws"] - hand[:, None]], axis=1)
        return {
            "pixels": jittered(to_pixels(fields["images"]), self._random),
            "cell": torch.from_numpy(cell), "offset": torch.from_numpy(offset),
            "turn": torch.from_numpy(
                np.stack([np.cos(4 * yaw), np.sin(4 * yaw)], -1).astype(np.float32)
            ),
        }

    def look(self, count: int) -> Look:
        """Return frames without instructions."""
        return Look(**self.looks(self.gather(count)))

    def __call__(self) -> Batch:
        random, m = self._random, self.instructions
        fields = self.gather(self.frames)
        b = len(fields["joints"])
        joints = fields["joints"] + random.normal(0, JOINT_JITTER, (b, 6)).astype(np.float32)

        # The executed task and others, of different blocks as far as they go.
        blocks = len(BLOCK_NAMES)
        executed = random.random(b) < EXECUTED_SHARE
        begin = np.where(executed, fields["target"], random.integers(blocks, size=b))
        target = (begin[:, None] + random.permuted(
            np.tile(np.arange(1, blocks), (b, 1)), axis=1)[:, : m]) % blocks
        if m == blocks:
            target = np.concatenate([begin[:, None], target], axis=1)
        else:
            target[:, 0] = begin
        skill = random.choice(len(SKILLS), p=SKILL_SHARES, size=(b, m))
        skill[:, 0] = np.where(executed, fields["skill"], skill[:, 0])
        n, frame = b * m, np.repeat(np.arange(b), m)
        target, skill = target.reshape(n), skill.reshape(n)
        plan = expert.plan(joints[frame], fields["blocks"][frame], fields["yaws"][frame],
                           fields["pad"][frame], skill, target)
        ids = [
            self._sentences.draw(Task(SKILLS[s], COLOURS[t]), random)
            for s, t in zip(skill, target, strict=True)
        ]
        tokens, mask = self._sentences.batch(ids)

        present = random.random((b, len(CAMERAS))) >= CAMERA_DROP
        present[:, 0] |= ~present.any(1)
        hand = joints[:, 0] + joints[:, 4]
        relative = (fields["yaws"] - hand[:, None])[frame, target]
        place = (fields["blocks"][frame, target] - PLACE_MEAN) / PLACE_STD
        pad = (fields["pad"][frame] - PLACE_MEAN[:2]) / PLACE_STD[:2]
        s = self._statistics

        def tensor(values: np.ndarray, kind=np.float32) -> torch.Tensor:
            return torch.from_numpy(np.ascontiguousarray(values, dtype=kind))

        return Batch(
            **self.looks(fields), present=torch.from_numpy(present),
            state=tensor((joints - s.state_mean) / s.state_std),
            ids=torch.from_numpy(tokens), mask=torch.from_numpy(mask),
            actions=tensor((plan.rows - s.action_mean) / s.action_std),
            target=tensor(target, np.int64), skill=tensor(skill, np.int64),
            phase=tensor(plan.phase, np.int64), place=tensor(place), pad=tensor(pad),
            relative=tensor(np.stack([np.cos(4 * relative), np.sin(4 * relative)], -1)),
        )


assert CONFIG.image_tokens == CELLS * CELLS and OBJECTS == len(BLOCK_NAMES) + 1
