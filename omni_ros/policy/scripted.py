# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy without a network: chunks that trace a fixed path.

It stands where a learned policy stands, with the same inputs (an observation: stamp and joint
positions) and the same output (rows of joint targets), so that a robot's wiring, limits and stops can be
tried before any weights exist. Chunks are a pure function of the observation and of the time the
path was started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np

#: A path: seconds since its start (rows,) -> joint positions (rows, n) in topic units.
Path = Callable[[np.ndarray], np.ndarray]


def wave_path(lower: np.ndarray, upper: np.ndarray, home: np.ndarray, *,
              share: float = 0.12, period_s: float = 8.0) -> Path:
    """Slow sines about the home pose, each joint with a phase of its own; for any robot.

    :param lower, upper, home: (n,) position limits and home pose, topic units.
    :param share: amplitude as a share of each joint's range, cut where a limit is nearer.
    :param period_s: seconds for one wave.
    """
    room = np.minimum(upper - home, home - lower)
    amplitude = np.clip(np.minimum(share * (upper - lower), 0.8 * room), 0.0, None)
    phase = np.arange(len(home)) * (np.pi / 3)

    def path(seconds: np.ndarray) -> np.ndarray:
        angle = 2 * np.pi * np.asarray(seconds)[:, None] / period_s + phase
        return home + amplitude * np.sin(angle)

    return path


def circle_path(*, centre: tuple = (0.21, 0.0, 0.10), radius: float = 0.06,
                period_s: float = 6.0) -> Path:
    """The finger tip of the table-top arm draws a level circle above the table.

    :param centre: metres, frame "world". :param radius: metres. :param period_s: seconds a turn.
    :raises omni_ros.world.kinematics.UnreachableError: part of the circle is out of reach.
    """
    from omni_ros.world import kinematics

    def path(seconds: np.ndarray) -> np.ndarray:
        angle = 2 * np.pi * np.asarray(seconds) / period_s
        tip = np.stack([centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle),
                        np.full_like(angle, centre[2])], axis=-1)
        return kinematics.inverse(tip)

    path(np.linspace(0.0, period_s, 64))  # every point reachable, or refused here
    return path


@dataclass(frozen=True)
class ScriptedPolicy:
    """Turns observations into chunks along a path.

    :param path: where to be, by seconds since the start.
    :param rows: rows of a chunk. :param dt: seconds between rows.
    :param approach_s: seconds over which the arm is led from where it is onto the path.
    """

    path: Path
    rows: int
    dt: float
    approach_s: float = 3.0

    def __post_init__(self) -> None:
        if self.rows < 1 or not self.dt > 0.0 or not self.approach_s > 0.0:
            raise ValueError(
                f"rows={self.rows}, dt={self.dt} s, approach_s={self.approach_s} s: "
                "rows must be at least 1 and both times above 0")

    def positions(self, elapsed: float, measured: np.ndarray) -> np.ndarray:
        """Return targets (rows, n) in topic units; row k is for `elapsed + (k + 1) * dt`.

        :param elapsed: seconds from the start of the path to the observation.
        :param measured: (n,) joint positions of the observation, topic units.
        """
        times = elapsed + self.dt * np.arange(1, self.rows + 1)
        share = np.clip(times / self.approach_s, 0.0, 1.0)
        weight = (share * share * (3.0 - 2.0 * share))[:, None]
        return (1.0 - weight) * measured + weight * self.path(times)

    def velocities(self, elapsed: float, measured: np.ndarray) -> np.ndarray:
        """Return joint velocities (rows, n), topic units per second, along the same targets."""
        targets = np.concatenate([
            self.positions(elapsed, measured),
            self.positions(elapsed + self.dt, measured)[-1:],
        ])
        return np.diff(targets, axis=0) / self.dt
