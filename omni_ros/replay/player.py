# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The player and its limiter run again on what a bag holds, in simulated time; commands compared.

When the player ticked and when it took each chunk is on its status, to the tick, but not to the bit, and
joint states and heartbeats are taken to have come when the recorder got them. So a command may be off by
what a joint does meanwhile: up to one tick at its speed limit is allowed, and called within tolerance. The
policy is not run: chunks are the recorded ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.player import Player
from omni_ros.player.chunk import parse_chunk
from omni_ros.player.reasons import Reason, State
from omni_ros.replay.bag import Bag
from omni_ros.replay.contents import Contents, read_contents, to_ns
from omni_ros.replay.player_ticks import Tick, arrivals, ticks_of
from omni_ros.replay.verdict import Kind
from omni_ros.robot import Robot

TRAJECTORY, ARRAY = "trajectory_msgs/msg/JointTrajectory", "std_msgs/msg/Float64MultiArray"


@dataclass
class PlayerReplay:
    """What came of it.

    :param by_joint: largest differences, f64 [joints], in topic units; `allowed` likewise.
    :param typical: of all differences, the 99th percentile, by joint. :param alone: recorded commands
        at which the player of now says nothing, and the other way round.
    """

    kind: Kind
    joint_names: tuple[str, ...]
    units: tuple[str, ...]
    by_joint: np.ndarray
    typical: np.ndarray
    allowed: np.ndarray
    compared: int
    same: int
    alone: tuple[int, int]
    words: str
    times: np.ndarray = field(default_factory=lambda: np.zeros(0))
    recorded: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    replayed: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def text(self) -> str:
        """One line."""
        return f"the player, run again: {self.kind.value}: {self.words}"

    def data(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "verdict": self.kind.value, "text": self.words, "compared": self.compared,
            "same": self.same, "recorded_alone": self.alone[0], "replayed_alone": self.alone[1],
            "difference": dict(zip(self.joint_names, self.by_joint.tolist())),
            "difference_p99": dict(zip(self.joint_names, self.typical.tolist())),
            "allowed": dict(zip(self.joint_names, self.allowed.tolist())),
        }

    def section(self) -> Any:
        """Return its part of the page."""
        from omni_ros.replay.plots import commands_overlaid
        from omni_ros.report.html import Picture, Section, Table

        rows = [(name, f"{worst:.2g}", f"{typical:.2g}", f"{allowed:.2g}", unit)
                for name, worst, typical, allowed, unit in zip(
                    self.joint_names, self.by_joint, self.typical, self.allowed, self.units)]
        parts: list[Any] = [Table(("joint", "largest", "p99", "allowed", "unit"), rows)]
        picture = commands_overlaid(self.times, self.recorded, self.replayed, self.joint_names)
        if picture:
            parts.append(Picture(picture, "recorded and computed commands by joint"))
        return Section("Player", f"{self.words[0].upper()}{self.words[1:]}.", parts)


def replay_player(bag: str | Path, options: Any) -> PlayerReplay:
    """Run the player of a bag's robot, or of another one, on the bag's chunks.

    :param options: a `replaying.Options`: robot, namespace.
    :raises ValueError: bag or robot cannot be used.
    """
    from omni_ros.replay.replaying import robot_of

    with Bag(Path(bag)) as opened:
        contents = read_contents(opened, options.namespace)
        robot, _ = robot_of(contents, options.robot)
        commands = _commands(contents, robot)
        names = robot.joint_names
        if len(commands) < 2:
            return _unknown(names, f"no commands are in the bag (topic {robot.command_topic})")
        if "heartbeat" not in contents.topics and robot.player.require_heartbeat:
            return _unknown(names, "no heartbeats are in the bag, without which the player refuses chunks")
        if not contents.joints:
            return _unknown(names, "no joint states are in the bag, without which nothing is commanded")
        statuses = [status for status, _ in contents.messages("player_status")]
        ticks, told = ticks_of(commands, statuses, robot.player.period_ns)
        events = list(_events(contents, arrivals(statuses) if told else {}))
        return _compare(robot, ticks, commands, list(_play(robot, ticks, events)), told)


def _commands(contents: Contents, robot: Robot) -> list[tuple[int, np.ndarray]]:
    """Return when each command came, and its positions (or velocities) in the robot's order."""
    kind = TRAJECTORY if robot.player.output == "joint_trajectory" else ARRAY
    topics = contents.bag.topics
    topic = contents.topics.get("command")
    if topic is None or topics.get(topic) != kind:
        topic = next((one for one, of in topics.items() if of == kind
                      and one.endswith("/" + robot.command_topic.lstrip("/"))), None)
    if topic is None:
        return []
    contents.topics["command"] = topic
    found = []
    for message, log_ns in contents.messages("command"):
        if kind == TRAJECTORY:
            if not message.points or sorted(message.joint_names) != sorted(robot.joint_names):
                continue
            order = [list(message.joint_names).index(name) for name in robot.joint_names]
            values = np.array(message.points[0].positions, np.float64)[order]
        else:
            values = np.array(message.data, np.float64)
        found.append((log_ns, values))
    return sorted(found, key=lambda one: one[0])


def _events(contents: Contents, taken: dict[tuple[str, int, int], int]
            ) -> Iterator[tuple[int, int, str, Any]]:
    """Yield all that reached the player: when, in which order within a tick, what.

    :param taken: when the player is known to have taken a chunk.
    """
    if contents.topics.get("protective_stop") is not None:
        for message, log_ns in contents.messages("protective_stop"):
            yield log_ns, 0, "stop", bool(message.data)
    for status, log_ns in contents.messages("player_status"):
        yield to_ns(status.header.stamp) if taken else log_ns, 0, "status", status
    for one in contents.joints:
        yield one.log_ns, 1, "joints", one
    for message, log_ns in contents.messages("heartbeat"):
        yield log_ns, 2, "beat", message
    for chunk in contents.chunks:
        # A hair early: the age on a status is rounded, and the tick itself must find it.
        at = taken.get((chunk.source, chunk.chunk_id, chunk.stamp_ns))
        yield chunk.log_ns if at is None else at - 1_000_000, 3, "chunk", chunk.message


class _Replayed:
    """The player, and what is known of the one that was recorded."""

    def __init__(self, robot: Robot) -> None:
        self.player, self.robot = Player(robot), robot
        self._pids: dict[str, int] = {}
        self._tripped = self._leaving = False

    def take(self, what: str, value: Any, now_ns: int) -> None:
        player = self.player
        if what == "joints":
            player.on_joint_state(value.names, value.positions, value.velocities, value.stamp_ns,
                                  now_ns)
        elif what == "beat":
            source, pid = str(value.source), int(value.pid)
            if self._pids.setdefault(source, pid) != pid:
                player.on_source_exit(source, now_ns)
                self._pids[source] = pid
            player.on_heartbeat(source, now_ns)
        elif what == "chunk":
            player.on_chunk(self._chunk(value, now_ns), now_ns)
        elif what == "stop":
            player.protective_stop(value, now_ns)
        else:
            self._status(value, now_ns)

    def _status(self, status: Any, now_ns: int) -> None:
        """Do what was asked by service, which no topic carries: its effect is on the status."""
        tripped, reasons = bool(status.trip_reason), [int(one) for one in status.reasons]
        if tripped and not self._tripped and (
                int(status.trip_reason) == Reason.PROTECTIVE_STOP) and not self.player.trip_reason:
            self.player.protective_stop(True, now_ns)
            self.player.protective_stop(False, now_ns)
        if self._tripped and not tripped:
            self.player.reset(now_ns)
        leaving = int(status.state) == State.INACTIVE or int(Reason.SHUTDOWN) in reasons
        if leaving and not self._leaving:
            self.player.deactivate(now_ns)
        elif self._leaving and not leaving:
            self.player.activate(now_ns)
        self._tripped, self._leaving = tripped, leaving

    def _chunk(self, message: Any, now_ns: int) -> Any:
        return parse_chunk(
            robot=self.robot, stamp_ns=to_ns(message.header.stamp), dt_ns=to_ns(message.dt),
            life_ns=to_ns(message.life), control_mode=int(message.control_mode),
            joint_names=[str(one) for one in message.joint_names],
            joint_units=[str(one) for one in message.joint_units], rows=int(message.rows),
            values=np.array(message.values, np.float64), anchor=np.array(message.anchor, np.float64),
            chunk_id=int(message.chunk_id), observation_seq=int(message.observation_seq),
            source=str(message.source), noise_seed=int(message.noise_seed), received_ns=now_ns)


def _play(robot: Robot, ticks: list[Tick], events: list[tuple[int, int, str, Any]]
          ) -> Iterator[np.ndarray | None]:
    """Yield the command of each tick, None where there is none."""
    events.sort(key=lambda one: (one[0], one[1]))
    replayed, at = _Replayed(robot), 0
    replayed.player.activate(ticks[0].now_ns)
    for now_ns in (tick.now_ns for tick in ticks):
        came = []
        while at < len(events) and events[at][0] <= now_ns:
            came.append(events[at])
            at += 1
        for _, _, what, value in sorted(came, key=lambda one: one[1]):  # as the node takes them
            replayed.take(what, value, now_ns)
        command = replayed.player.tick(now_ns)
        yield None if command is None else (
            command.velocity if robot.player.velocity_mode else command.position).copy()


def _compare(robot: Robot, ticks: list[Tick], commands: list[tuple[int, np.ndarray]],
             pairs: list[np.ndarray | None], told: bool) -> PlayerReplay:
    both, only, extra = [], 0, 0
    for tick, replayed in zip(ticks, pairs):
        if tick.command is not None and replayed is not None:
            both.append((tick.now_ns, commands[tick.command][1], replayed))
        only += tick.command is not None and replayed is None
        extra += tick.command is None and replayed is not None
    limit = robot.velocity * robot.player.period_s
    if robot.player.velocity_mode:
        limit = robot.acceleration * robot.player.period_s
    if not both:
        return _unknown(robot.joint_names, "the player of now commands nothing: the arm was never seen "
                        "at rest in the bag")
    times = np.array([one[0] for one in both], np.int64)
    recorded, replayed = (np.array([one[side] for one in both]) for side in (1, 2))
    gap = np.abs(recorded - replayed)
    by_joint, typical = gap.max(axis=0), np.percentile(gap, 99, axis=0)
    same = int((gap == 0.0).all(axis=1).sum())
    kind = Kind.SAME if same == len(both) and not only else (
        Kind.WITHIN if (by_joint <= limit).all() else Kind.DIFFERENT)
    worst = int((by_joint / limit).argmax())
    words = (f"{len(both)} commands compared, {same} the same bit for bit, "
             f"{robot.joint_names[worst]} off by {by_joint[worst]:.2g} at most (p99 "
             f"{typical[worst]:.2g}; one tick at its limit is {limit[worst]:.2g})")
    # At the start the player waits for an arm at rest; a recording may begin in mid motion.
    if only > robot.player.rate_hz:
        words += f"; {only} recorded commands have no counterpart now"
    if not told:
        words += "; when it ticked was worked out from the commands' times, as no status tells it"
    units = tuple(joint.unit for joint in robot.joints)
    return PlayerReplay(kind, robot.joint_names, units, by_joint, typical, limit, len(both), same,
                        (only, extra), words, (times - times[0]) * 1e-9, recorded, replayed)


def _unknown(names: tuple[str, ...], words: str) -> PlayerReplay:
    nothing = np.zeros(len(names))
    return PlayerReplay(Kind.INCOMPLETE, names, ("",) * len(names), nothing, nothing, nothing, 0, 0,
                        (0, 0), words)
