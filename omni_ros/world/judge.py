# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Says whether an episode of a task succeeded, from plain numbers.

The same rules for training's evaluation and for a whole graph: where the numbers come from
(simulation, or the world node's services) does not matter, nor how often, within reason: at least
ten times a second.

    touch    the tip within 20 mm of the top of the named block for 0.5 s. Wrong: the arm touches
             another block before that, or the tip stays at another block's top for 0.5 s.
    pick_up  the named block at least 50 mm above where it lay, for 1 s. Wrong: another is lifted.
    place    the named block at rest on the pad for 0.5 s, gripper open, the arm not touching it.
             Wrong: another block lies there that did not at first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum

import numpy as np

from omni_ros.world.scene import CUBE_SIDE
from omni_ros.world.tasks import PICK_UP, PLACE, TOUCH, Task

TOUCH_DISTANCE = 0.020
TOUCH_HOLD_S = 0.5
LIFT_HEIGHT = 0.050
LIFT_HOLD_S = 1.0
WRONG_LIFT_HEIGHT = 0.030
#: A block lies on the pad when its centre is this near to the pad's.
PLACE_DISTANCE = 0.025
PLACE_HEIGHT = 0.004
PLACE_HOLD_S = 0.5
#: The gripper is open above this angle; closed on a block it is at 0.21 to 0.3.
OPEN_GRIPPER = 0.35
TIME_LIMIT_S = {TOUCH: 6.0, PICK_UP: 10.0, PLACE: 16.0}


class Verdict(Enum):
    """How an episode stands."""

    RUNNING = "running"
    SUCCESS = "success"
    WRONG = "wrong block"
    TIMEOUT = "timeout"


class Judge:
    """Judges one episode; once a verdict has fallen it stays."""

    def __init__(
        self,
        task: Task,
        blocks: Mapping[str, Sequence[float]],
        *,
        pad: Sequence[float] | None = None,
        start_s: float = 0.0,
        time_limit_s: float | None = None,
    ) -> None:
        """:param blocks: centre (3) by name at the start; other names than blocks' are ignored.
        :param pad: centre of the pad (x, y, ...), which ``place`` needs.
        :param time_limit_s: None takes that of the skill.
        """
        if task.block_name not in blocks:
            raise ValueError(
                f"{task.block_name} is not among the objects {sorted(blocks)}; give the centre of "
                "every block at the start"
            )
        if task.skill == PLACE and pad is None:
            raise ValueError("place needs the centre of the pad; give pad=(x, y)")
        self.task = task
        self.verdict = Verdict.RUNNING
        self.reason = ""
        #: Smallest distance from the tip to the top of the named block so far, metres.
        self.closest = float("inf")
        #: When the verdict fell, seconds since the start.
        self.seconds = 0.0
        self._start_s = start_s
        self._limit_s = TIME_LIMIT_S[task.skill] if time_limit_s is None else time_limit_s
        self._first = {name: np.array(at, dtype=float) for name, at in blocks.items()
                       if name.startswith("block_")}
        self._pad = None if pad is None else np.array(pad, dtype=float)[:2]
        self._since: dict[tuple[str, str], float] = {}
        self._at_pad = {name for name in self._first if self._on_pad(self._first[name])}

    def update(
        self,
        time_s: float,
        *,
        tip: Sequence[float],
        blocks: Mapping[str, Sequence[float]],
        touched: Collection[str] = (),
        gripper: float = 0.0,
    ) -> Verdict:
        """Take the numbers of an instant.

        :param time_s: on the clock of `start_s`. :param tip: (3). :param blocks: centre (3) by name.
        :param touched: names of what the arm touches. :param gripper: its joint's position.
        """
        if self.verdict is not Verdict.RUNNING:
            return self.verdict
        now = {name: np.asarray(at, dtype=float) for name, at in blocks.items()
               if name in self._first}
        tip = np.asarray(tip, dtype=float)
        tops = {name: at + [0.0, 0.0, CUBE_SIDE / 2] for name, at in now.items()}
        mine = self.task.block_name
        self.closest = min(self.closest, float(np.linalg.norm(tip - tops[mine])))
        rule = {TOUCH: self._touch, PICK_UP: self._pick_up, PLACE: self._place}[self.task.skill]
        verdict, reason = rule(time_s, tip, now, tops, touched, gripper)
        self.seconds = time_s - self._start_s
        if verdict is Verdict.RUNNING and self.seconds >= self._limit_s:
            verdict, reason = Verdict.TIMEOUT, f"not done in {self._limit_s:g} s"
        self.verdict, self.reason = verdict, reason
        return verdict

    def _held_s(self, what: str, name: str, holds: bool, time_s: float) -> float:
        """Return for how long something has held without a break."""
        if not holds:
            self._since.pop((what, name), None)
            return -1.0
        return time_s - self._since.setdefault((what, name), time_s)

    def _touch(self, time_s, tip, now, tops, touched, gripper):
        mine = self.task.block_name
        held = {
            name: self._held_s("top", name, np.linalg.norm(tip - top) <= TOUCH_DISTANCE, time_s)
            for name, top in tops.items()
        }
        if held[mine] >= TOUCH_HOLD_S - 1e-6:
            return Verdict.SUCCESS, f"stayed at {mine}"
        for name in now:
            if name != mine and name in touched:
                return Verdict.WRONG, f"touched {name}"
            if name != mine and held[name] >= TOUCH_HOLD_S - 1e-6:
                return Verdict.WRONG, f"stayed at {name}"
        return Verdict.RUNNING, ""

    def _pick_up(self, time_s, tip, now, tops, touched, gripper):
        for name, at in now.items():
            height = at[2] - self._first[name][2]
            if name != self.task.block_name:
                if height >= WRONG_LIFT_HEIGHT:
                    return Verdict.WRONG, f"lifted {name}"
            elif self._held_s("up", name, height >= LIFT_HEIGHT, time_s) >= LIFT_HOLD_S - 1e-6:
                return Verdict.SUCCESS, f"lifted {name}"
        return Verdict.RUNNING, ""

    def _place(self, time_s, tip, now, tops, touched, gripper):
        for name, at in now.items():
            there = self._on_pad(at) and name not in touched and gripper > OPEN_GRIPPER
            held = self._held_s("pad", name, there, time_s) >= PLACE_HOLD_S - 1e-6
            if name == self.task.block_name:
                if held:
                    return Verdict.SUCCESS, f"{name} lies on the pad"
            elif held and name not in self._at_pad:
                return Verdict.WRONG, f"{name} lies on the pad"
        return Verdict.RUNNING, ""

    def _on_pad(self, at: np.ndarray) -> bool:
        return (
            self._pad is not None
            and float(np.linalg.norm(at[:2] - self._pad)) <= PLACE_DISTANCE
            and abs(at[2] - CUBE_SIDE / 2) <= PLACE_HEIGHT
        )
