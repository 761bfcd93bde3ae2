# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A chunk of actions as the player keeps it, and the checks on the way in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

import numpy as np

from omni_ros.player.reasons import ControlMode, Reason
from omni_ros.robot import PlayerConfig, Robot


#: Longest dt and life, one hour: anything longer is a unit mistake.
_LONGEST_NS = 3600 * 10**9
#: Names that a text shows, and characters of each: a text must stay short whatever arrives.
_FEW = 8
_SHORT = 40


@dataclass(frozen=True)
class Chunk:
    """A chunk whose contents were checked. Row k is due at `stamp_ns + (k + 1) * dt_ns`.

    `values` is float64 (rows, n) in topic units (positions, or velocities when control_mode is
    VELOCITY), columns in the order of the robot's joints.
    """

    stamp_ns: int
    dt_ns: int
    life_ns: int
    control_mode: ControlMode
    values: np.ndarray
    chunk_id: int
    observation_seq: int = 0
    source: str = "local"
    noise_seed: int = 0
    received_ns: int = 0


@dataclass(frozen=True)
class Refusal:
    """Why a chunk was not taken, in a code and in plain words."""

    reason: Reason
    text: str
    source: str = ""
    chunk_id: int = 0


def parse_chunk(
    *,
    robot: Robot,
    stamp_ns: int,
    dt_ns: int,
    life_ns: int,
    control_mode: int,
    joint_names: Sequence[str],
    joint_units: Sequence[str],
    rows: int,
    values: Sequence[float] | np.ndarray,
    anchor: Sequence[float] | np.ndarray = (),
    chunk_id: int,
    observation_seq: int = 0,
    source: str = "local",
    noise_seed: int = 0,
    received_ns: int = 0,
    config: PlayerConfig | None = None,
) -> Chunk | Refusal:
    """Check the fields of an ActionChunk and convert it to topic units and joint order.

    Names may be the robot's joint names or its policy names (all of one kind), in any order.
    Returns a Refusal, never raises, whatever the fields hold. What depends on time or on what
    is being played (ages, order, source) is checked by the player.
    """
    config = config or robot.player

    def refuse(reason: Reason, text: str) -> Refusal:
        words = f"chunk {chunk_id} of {source[:_SHORT]!r}: {text}"
        return Refusal(reason, words, source, int(chunk_id))

    # Sizes before anything is converted, searched or worded: the arm waits for this function.
    n = len(robot.joints)
    given, anchors = _size(values), _size(anchor)
    if given > config.max_rows * n or anchors > n:
        return refuse(
            Reason.BAD_SHAPE,
            f"{rows} rows, {given} values and {anchors} of the anchor, expected at most"
            f" {config.max_rows} rows (max_rows) of {n} joints",
        )
    try:
        flat = np.array(values, dtype=np.float64).reshape(-1)
        zero = np.array(anchor, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        return refuse(Reason.BAD_SHAPE, f"values are not numbers ({error})")
    bad = int(np.count_nonzero(~np.isfinite(flat))) + int(np.count_nonzero(~np.isfinite(zero)))
    if bad:
        return refuse(
            Reason.NON_FINITE, f"{bad} of {flat.size + zero.size} values are NaN or infinite"
        )
    if len(joint_names) != n:
        return refuse(Reason.BAD_JOINTS, _wrong_count(joint_names, robot))
    columns = _columns(joint_names, robot)
    if isinstance(columns, str):
        return refuse(Reason.BAD_JOINTS, columns)
    if not 1 <= rows <= config.max_rows:
        return refuse(Reason.BAD_SHAPE, f"{rows} rows, expected 1 to {config.max_rows} (max_rows)")
    if flat.size != rows * n:
        return refuse(
            Reason.BAD_SHAPE,
            f"{flat.size} values, expected {rows * n} ({rows} rows of {n} joints)",
        )
    expected = [robot.policy_units[joint] for joint in columns]
    if len(joint_units) != n or list(joint_units) != expected:
        return refuse(
            Reason.BAD_UNITS,
            f"units are {_few(joint_units)}, but the robot YAML says {_few(expected)}",
        )
    mode = _mode(control_mode, config)
    if isinstance(mode, str):
        return refuse(Reason.BAD_MODE, mode)
    if mode is ControlMode.POSITION_OFFSET and zero.size != n:
        return refuse(
            Reason.BAD_MODE, f"anchor has {zero.size} values, expected {n} for position offsets"
        )
    if not (0 < dt_ns <= _LONGEST_NS and 0 < life_ns <= _LONGEST_NS):
        return refuse(
            Reason.BAD_TIME,
            f"dt is {dt_ns * 1e-9:g} s and life {life_ns * 1e-9:g} s, expected both above 0"
            f" and at most {_LONGEST_NS * 1e-9:g} s",
        )
    table = flat.reshape(rows, n)
    if mode is ControlMode.POSITION_OFFSET:
        # Fixed to the pose at the observation, once: re-anchoring on each tick makes arms swing.
        table = table + zero
    ordered = np.empty_like(table)
    ordered[:, columns] = table
    velocity = mode is ControlMode.VELOCITY
    with np.errstate(over="ignore", invalid="ignore"):
        topic = robot.velocity_to_topic(ordered) if velocity else robot.to_topic(ordered)
    if not np.isfinite(topic).all():
        return refuse(Reason.NON_FINITE, "values overflow when converted to topic units")
    return Chunk(
        stamp_ns=int(stamp_ns),
        dt_ns=int(dt_ns),
        life_ns=int(life_ns),
        control_mode=ControlMode.VELOCITY if velocity else ControlMode.POSITION,
        values=topic,
        chunk_id=int(chunk_id),
        observation_seq=int(observation_seq),
        source=source,
        noise_seed=int(noise_seed),
        received_ns=int(received_ns),
    )


def _size(values: Sequence[float] | np.ndarray) -> int:
    """Number of values without looking at them."""
    return values.size if isinstance(values, np.ndarray) else len(values)


def _few(names: Sequence[str]) -> str:
    """Show the first names, each cut to a readable length, and how many there are."""
    shown = [str(name)[:_SHORT] for name in names[:_FEW]]
    return f"{shown}" if len(names) <= _FEW else f"{shown} and {len(names) - _FEW} more"


def _wrong_count(names: Sequence[str], robot: Robot) -> str:
    """Say that there are too many or too few names; looks at no more than the robot has, twice."""
    n = len(robot.joints)
    text = f"{len(names)} joint names, expected the robot's {n} {_few(robot.joint_names)}"
    given = list(names[: 2 * n])
    repeated = [name for name in robot.joint_names if given.count(name) > 1]
    if repeated:
        return f"{text}: {_few(repeated)} are repeated"
    return f"{text}: missing {_few([name for name in robot.joint_names if name not in given])}"


def _columns(names: Sequence[str], robot: Robot) -> list[int] | str:
    """Joint index of each column, or what is wrong with the names; as many as the robot has."""
    names = list(names)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        return f"joint names {_few(repeated)} are repeated"
    for known in (robot.joint_names, robot.policy_names):
        if set(names) == set(known):
            return [known.index(name) for name in names]
    missing = [name for name in robot.joint_names if name not in names]
    unknown = [n for n in names if n not in robot.joint_names and n not in robot.policy_names]
    return (
        f"joint names {_few(names)} do not fit the robot's {_few(robot.joint_names)}"
        f" (missing {_few(missing)}, unknown {_few(unknown)})"
    )


def _mode(control_mode: int, config: PlayerConfig) -> ControlMode | str:
    try:
        mode = ControlMode(control_mode)
    except ValueError:
        return f"control mode {control_mode} is not one of {[int(m) for m in ControlMode]}"
    if (mode is ControlMode.VELOCITY) != config.velocity_mode:
        kind = "velocities" if config.velocity_mode else "positions"
        return f"control mode is {mode.name}, but output {config.output} plays {kind}"
    return mode
