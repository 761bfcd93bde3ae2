# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the table-top policy can be asked for, and the sentences that ask for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omni_ros.world.scene import BLOCK_COLOURS

COLOURS = tuple(BLOCK_COLOURS)
TOUCH, PICK_UP, PLACE = "touch", "pick_up", "place"
SKILLS = (TOUCH, PICK_UP, PLACE)

#: The sentences of training, by skill; `{}` takes the colour.
TRAINING = {
    TOUCH: (
        "touch the {} block",
        "touch the {} cube",
        "go to the {} block",
        "move to the {} cube",
        "reach for the {} block",
        "tap the {} block",
        "point at the {} cube",
        "put your finger on the {} block",
        "please touch the {} block",
        "hover over the {} cube",
    ),
    PICK_UP: (
        "pick up the {} block",
        "pick up the {} cube",
        "lift the {} block",
        "lift up the {} cube",
        "grab the {} block",
        "take the {} cube",
        "grasp the {} block and lift it",
        "pick the {} block up",
        "please pick up the {} block",
        "raise the {} cube",
    ),
    PLACE: (
        "place the {} block on the pad",
        "put the {} block on the pad",
        "put the {} cube on the black pad",
        "move the {} block onto the pad",
        "set the {} cube down on the pad",
        "pick up the {} block and place it on the pad",
        "bring the {} cube to the pad",
        "please put the {} block on the pad",
        "drop the {} block on the pad",
        "place the {} cube on the black disc",
    ),
}

#: Sentences that training never shows, to measure with.
HELD_OUT = {
    TOUCH: (
        "touch the block that is {}",
        "go and touch the {} one",
        "could you touch the {} cube",
        "reach the {} cube",
        "now go to the {} cube please",
    ),
    PICK_UP: (
        "pick the {} cube up",
        "grab the {} cube and lift it up",
        "could you pick up the {} cube",
        "take the {} block and raise it",
        "now lift the {} cube please",
    ),
    PLACE: (
        "place the {} cube on the pad",
        "could you put the {} cube on the pad",
        "take the {} block and put it on the pad",
        "move the {} cube to the black pad",
        "now bring the {} block onto the pad please",
    ),
}


@dataclass(frozen=True)
class Task:
    """A skill and the colour of the block it is about."""

    skill: str
    colour: str

    def __post_init__(self) -> None:
        if self.skill not in SKILLS or self.colour not in COLOURS:
            raise ValueError(
                f"task is {self.skill!r} of {self.colour!r}; expected a skill of "
                f"{', '.join(SKILLS)} and a colour of {', '.join(COLOURS)}"
            )

    @property
    def skill_index(self) -> int:
        return SKILLS.index(self.skill)

    @property
    def block_index(self) -> int:
        """Its block's place in ``scene.BLOCK_NAMES``."""
        return COLOURS.index(self.colour)

    @property
    def block_name(self) -> str:
        return f"block_{self.colour}"


def phrases(task: Task, *, held_out: bool = False) -> tuple[str, ...]:
    """Return every sentence for a task."""
    templates = (HELD_OUT if held_out else TRAINING)[task.skill]
    return tuple(template.format(task.colour) for template in templates)


def phrase(task: Task, random: np.random.Generator | int, *, held_out: bool = False) -> str:
    """Return one of the sentences for a task.

    :param random: a generator to draw with, or the number of the sentence (it wraps).
    """
    choices = phrases(task, held_out=held_out)
    if isinstance(random, np.random.Generator):
        return choices[int(random.integers(len(choices)))]
    return choices[int(random) % len(choices)]


def task_of(text: str) -> Task | None:
    """Return the task that a known sentence asks for, None for any other."""
    wanted = " ".join(text.lower().split()).rstrip(".!")
    for skill in SKILLS:
        for colour in COLOURS:
            task = Task(skill, colour)
            if wanted in phrases(task) or wanted in phrases(task, held_out=True):
                return task
    return None
