# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What leaves the player: one command a tick, and a status."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from omni_ros.player.reasons import REASON_COUNT, Reason, State


@dataclass(frozen=True)
class Command:
    """One tick's command, float64 in topic units, n joints in the robot's order.

    `position`, `velocity`, `acceleration` are what to reach one period from now. The rows of
    `ahead_*` (lookahead - 1 of them) are the next planned setpoints, one period apart, and those
    of `tail_*` the stop that follows: its last velocity is zero (it has no rows when the plan
    already ends at rest). Everything in it is within the limits, differences included.

    `periods` is how many periods passed since the previous command: more than 1 when ticks
    were missed and a trajectory controller went on along the plan meanwhile. `rebased` is true
    when the command starts anew from the measured pose, so that it does not follow the previous
    one (first command, or an arm moved by hand while at rest).
    """

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    ahead_position: np.ndarray
    ahead_velocity: np.ndarray
    tail_position: np.ndarray
    tail_velocity: np.ndarray
    joint_reasons: np.ndarray  # uint8 (n,), Reason
    periods: int = 1
    rebased: bool = False


@dataclass
class Counters:
    """Counts since configure; `refused` and `limited` are indexed by Reason."""

    ticks: int = 0
    ticks_missed: int = 0
    commands: int = 0
    chunks_received: int = 0
    chunks_played: int = 0
    rows_dropped_late: int = 0
    refused: list[int] = field(default_factory=lambda: [0] * REASON_COUNT)
    limited: list[int] = field(default_factory=lambda: [0] * REASON_COUNT)
    stops: int = 0


@dataclass(frozen=True)
class PlayerStatusData:
    """The fields of msg/PlayerStatus.msg that the core knows; ages are seconds, NaN if none."""

    stamp_ns: int
    state: State
    reasons: tuple[Reason, ...]
    trip_reason: Reason
    text: str
    source: str
    chunk_id: int
    observation_stamp_ns: int
    observation_age: float
    chunk_age: float
    joint_state_age: float
    heartbeat_age: float
    joint_names: tuple[str, ...]
    command_position: tuple[float, ...]
    command_velocity: tuple[float, ...]
    joint_reasons: tuple[int, ...]
    counters: Counters
