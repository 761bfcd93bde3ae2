# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""States and reasons of the player: the constants of msg/PlayerStatus.msg."""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """What the player does."""

    INACTIVE = 0
    WAITING = 1
    HOLDING = 2
    RAMPING_IN = 3
    PLAYING = 4
    STALE = 5
    TRIPPED = 6


class Reason(IntEnum):
    """Why it does so, why a chunk was refused, or what limited a joint."""

    NONE = 0
    NO_CLOCK = 1
    NO_JOINT_STATE = 2
    JOINT_STATE_STALE = 3
    OBSERVATION_STALE = 4
    CHUNK_STALE = 5
    STARVED = 6
    HEARTBEAT_LOST = 7
    NON_FINITE = 8
    BAD_SHAPE = 9
    BAD_JOINTS = 10
    BAD_UNITS = 11
    BAD_MODE = 12
    BAD_TIME = 13
    FUTURE_STAMP = 14
    OUT_OF_ORDER = 15
    FOREIGN_SOURCE = 16
    POSITION_LIMIT = 17
    VELOCITY_LIMIT = 18
    ACCELERATION_LIMIT = 19
    JERK_LIMIT = 20
    PROTECTIVE_STOP = 21
    CLOCK_JUMP = 22
    SHUTDOWN = 23
    OUT_OF_LIMITS = 24


class ControlMode(IntEnum):
    """How the values of a chunk are to be read: the constants of msg/ActionChunk.msg."""

    POSITION = 1
    VELOCITY = 2
    POSITION_OFFSET = 3


#: Length of the counters indexed by reason.
REASON_COUNT = max(Reason) + 1
