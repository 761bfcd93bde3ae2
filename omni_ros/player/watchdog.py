# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Ages to reasons: what is too old to go on with. Pure, so that it can be tested by table."""

from __future__ import annotations

import math
from dataclasses import dataclass

from omni_ros.player.reasons import Reason
from omni_ros.robot import PlayerConfig


@dataclass(frozen=True)
class Ages:
    """Ages in seconds; NaN where there is nothing to measure (which is never too old)."""

    observation: float = math.nan
    chunk: float = math.nan
    joint_state: float = math.nan
    heartbeat: float = math.nan


def stale(ages: Ages, config: PlayerConfig) -> list[Reason]:
    """Return the reasons to stop that follow from ages alone."""
    reasons = []
    if ages.joint_state > config.joint_state_timeout_s:
        reasons.append(Reason.JOINT_STATE_STALE)
    if ages.observation > config.observation_timeout_s:
        reasons.append(Reason.OBSERVATION_STALE)
    if ages.heartbeat > config.heartbeat_timeout_s:
        reasons.append(Reason.HEARTBEAT_LOST)
    return reasons


def describe(reason: Reason, ages: Ages, config: PlayerConfig) -> str:
    """Say a reason in plain words, with the numbers behind it."""
    if reason is Reason.JOINT_STATE_STALE:
        return _aged("joint states", ages.joint_state, config.joint_state_timeout_s)
    if reason is Reason.OBSERVATION_STALE:
        return _aged("the observation", ages.observation, config.observation_timeout_s)
    if reason is Reason.HEARTBEAT_LOST:
        if math.isnan(ages.heartbeat):
            return "the source's heartbeat was lost or its process ended"
        return _aged("the heartbeat", ages.heartbeat, config.heartbeat_timeout_s)
    return _WORDS[reason]


def _aged(what: str, age: float, limit: float) -> str:
    if age > limit:
        return f"{what} stopped: {age:.3f} s old, limit {limit:g} s"
    return f"{what} had stopped (limit {limit:g} s)"


_WORDS = {
    Reason.NO_CLOCK: "no time on /clock yet",
    Reason.NO_JOINT_STATE: "not all joints have been measured yet",
    Reason.CHUNK_STALE: "the chunk outlived its life",
    Reason.STARVED: "rows ran out and no new chunk came",
    Reason.NON_FINITE: "NaN or infinity in a chunk",
    Reason.PROTECTIVE_STOP: "a protective stop was asked for",
    Reason.CLOCK_JUMP: "the clock jumped; queues were emptied",
    Reason.SHUTDOWN: "the player was told to stop: deactivated, or its process is ending",
    Reason.OUT_OF_LIMITS: "joints are outside of the position limits",
}
