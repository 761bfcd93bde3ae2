# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""ros2_control's joint_trajectory_controller and forward_command_controller, in numpy.

What a real arm's controllers take, refuse and do when commands stop, so that a player that works
here works there. Times are integer nanoseconds of ROS time, joint arrays float64 (n,), SI units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omni_ros.player.trajectory import TrajectoryPoint, check_joint_trajectory

_NS = 1e-9


@dataclass(frozen=True)
class Sample:
    """Where a trajectory is at one time: position, velocity and acceleration, each (n,)."""

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


@dataclass(frozen=True)
class Knot:
    """A point of a trajectory at an absolute time; velocity and acceleration may be missing."""

    time_ns: int
    position: np.ndarray
    velocity: np.ndarray | None = None
    acceleration: np.ndarray | None = None

    def at_rest(self) -> Sample:
        """Return the point as a place to stay at."""
        zero = np.zeros_like(self.position)
        return Sample(self.position, zero, zero)


@dataclass(frozen=True)
class Segment:
    """The path from one knot to the next, followed until a time, not always to its end."""

    start: Knot
    end: Knot
    until_ns: int


def interpolate(start: Knot, end: Knot, time_ns: int) -> Sample:
    """Return the state between two knots, of the highest order that both of them support.

    Linear for positions alone, cubic where both have velocities, quintic where both have
    accelerations too.
    """
    span = (end.time_ns - start.time_ns) * _NS
    t = (time_ns - start.time_ns) * _NS
    change = end.position - start.position
    if start.velocity is None or end.velocity is None:
        return Sample(
            start.position + change * (t / span), change / span, np.zeros_like(change)
        )
    v0, v1 = start.velocity, end.velocity
    if start.acceleration is None or end.acceleration is None:
        c2 = (3 * change / span - 2 * v0 - v1) / span
        c3 = (-2 * change / span + v0 + v1) / span**2
        return Sample(
            start.position + t * (v0 + t * (c2 + t * c3)),
            v0 + t * (2 * c2 + 3 * t * c3),
            2 * c2 + 6 * t * c3,
        )
    a0, a1 = start.acceleration, end.acceleration
    c3 = (20 * change - (8 * v1 + 12 * v0) * span - (3 * a0 - a1) * span**2) / (2 * span**3)
    c4 = (-30 * change + (14 * v1 + 16 * v0) * span + (3 * a0 - 2 * a1) * span**2) / (2 * span**4)
    c5 = (12 * change - 6 * (v1 + v0) * span + (a1 - a0) * span**2) / (2 * span**5)
    return Sample(
        start.position + t * (v0 + t * (a0 / 2 + t * (c3 + t * (c4 + t * c5)))),
        v0 + t * (a0 + t * (3 * c3 + t * (4 * c4 + t * 5 * c5))),
        a0 + t * (6 * c3 + t * (12 * c4 + t * 20 * c5)),
    )


class JointTrajectoryController:
    """Follows trajectories the way ros2_control's controller of that name does.

    A new trajectory replaces the running one from its start time on; what the running one has
    still to do before then is kept. After its last point the arm stays there; with `cmd_timeout_s`
    above 0 it is told, that long after the last point, to stay where it was measured. An empty
    trajectory means: stay where you are.

    :param interpolate_from_desired_state: a trajectory that starts now starts from the commanded
        state instead of the measured one, which lags behind it.
    :param allow_partial: trajectories may name some of the joints; the others stay.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        interpolate_from_desired_state: bool = False,
        cmd_timeout_s: float = 0.0,
        allow_partial: bool = False,
        allow_nonzero_end_velocity: bool = False,
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.interpolate_from_desired_state = interpolate_from_desired_state
        self.cmd_timeout_ns = int(cmd_timeout_s * 1e9)
        self.allow_partial = allow_partial
        self.allow_nonzero_end_velocity = allow_nonzero_end_velocity
        #: Times the arm was told to stay because commands had stopped.
        self.timeouts = 0
        self.hold(np.zeros(len(self.joint_names)))

    @property
    def holding(self) -> bool:
        """Whether there is no trajectory to follow any more."""
        return self._last is None

    @property
    def desired(self) -> Sample:
        """The state commanded last."""
        return self._desired

    def hold(self, position: np.ndarray) -> None:
        """Forget the trajectory and stay at a position."""
        self._segments: list[Segment] = []
        self._last: Knot | None = None
        self._desired = Knot(0, np.array(position, dtype=np.float64)).at_rest()

    def on_trajectory(
        self,
        joint_names: Sequence[str],
        points: Sequence[TrajectoryPoint],
        *,
        stamp_ns: int,
        now_ns: int,
        measured_position: np.ndarray,
        measured_velocity: np.ndarray,
    ) -> str | None:
        """Take a trajectory; return None, or why it was refused (then nothing changes).

        :param stamp_ns: when it starts; 0 means now.
        """
        if len(points) == 0:
            self.hold(measured_position)
            return None
        refusal = check_joint_trajectory(
            joint_names,
            points,
            controller_joints=self.joint_names,
            stamp_ns=stamp_ns,
            now_ns=now_ns,
            allow_partial=self.allow_partial,
            allow_nonzero_end_velocity=self.allow_nonzero_end_velocity,
        )
        if refusal is not None:
            return refusal
        start_ns = stamp_ns or now_ns
        knots = self._knots_of(joint_names, points, start_ns)
        kept: list[Segment] = []
        if start_ns > now_ns:
            kept = self._until(start_ns, now_ns)
            before = _knot(start_ns, self._sample(start_ns))
        elif self.interpolate_from_desired_state:
            before = _knot(now_ns, self._desired)
        else:
            before = Knot(now_ns, measured_position.copy(), measured_velocity.copy())
        if knots[0].time_ns > before.time_ns:
            knots.insert(0, before)
        new = [Segment(start, end, end.time_ns) for start, end in zip(knots, knots[1:])]
        self._segments = kept + new
        self._last = knots[-1]
        return None

    def update(self, now_ns: int, measured_position: np.ndarray) -> np.ndarray:
        """Return the position to command now, (n,)."""
        if self._last is None:
            return self._desired.position
        if self.cmd_timeout_ns > 0 and now_ns > self._last.time_ns + self.cmd_timeout_ns:
            self.timeouts += 1
            self.hold(measured_position)
            return self._desired.position
        while self._segments and self._segments[0].until_ns <= now_ns:
            self._segments.pop(0)
        self._desired = self._sample(now_ns)
        if not self._segments and self.cmd_timeout_ns == 0:
            self._last = None
        return self._desired.position

    def _sample(self, time_ns: int) -> Sample:
        """Return the state that the trajectory, or holding, asks for at a time."""
        for segment in self._segments:
            if time_ns < segment.until_ns:
                return interpolate(
                    segment.start, segment.end, max(time_ns, segment.start.time_ns)
                )
        return self._desired if self._last is None else self._last.at_rest()

    def _until(self, time_ns: int, now_ns: int) -> list[Segment]:
        """Return what the running trajectory does up to a future time."""
        kept = [s for s in self._segments if s.start.time_ns < time_ns]
        if kept and kept[-1].until_ns > time_ns:
            kept[-1] = Segment(kept[-1].start, kept[-1].end, time_ns)
        elif kept or self._last is None or self._last.time_ns < time_ns:
            rest = self._sample(time_ns)
            since = kept[-1].until_ns if kept else now_ns
            if since < time_ns:
                kept.append(Segment(_knot(since, rest), _knot(time_ns, rest), time_ns))
        return kept

    def _knots_of(
        self, joint_names: Sequence[str], points: Sequence[TrajectoryPoint], start_ns: int
    ) -> list[Knot]:
        columns = [self.joint_names.index(name) for name in joint_names]
        missing = self._desired.position

        def row(values: Any, rest: np.ndarray) -> np.ndarray | None:
            if len(values) == 0:
                return None
            full = rest.copy()
            full[columns] = values
            return full

        zero = np.zeros_like(missing)
        return [
            Knot(
                start_ns + point.time_from_start_ns,
                row(point.positions, missing),
                row(point.velocities, zero),
                row(point.accelerations, zero),
            )
            for point in points
        ]


class ForwardCommandController:
    """Passes on the last command, for ever: ros2_control's controller has no timeout.

    A command of the wrong size is refused; one that is not finite is ignored. Either way the
    last good command stays in force.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = tuple(joint_names)
        self.command: np.ndarray | None = None

    def on_command(self, values: Sequence[float]) -> str | None:
        """Take a command (n,); return None, or why it was not taken."""
        if len(values) != len(self.joint_names):
            return (
                f"command has {len(values)} values, the controller has "
                f"{len(self.joint_names)} joints ({', '.join(self.joint_names)}); send one value "
                "for each, in this order"
            )
        command = np.array(values, dtype=np.float64)
        bad = ~np.isfinite(command)
        if bad.any():
            index = int(np.argmax(bad))
            return (
                f"command for {self.joint_names[index]} is {command[index]}, expected a finite "
                "number; the last command stays in force"
            )
        self.command = command
        return None

    def clear(self) -> None:
        """Forget the last command, as deactivating the controller does."""
        self.command = None


def _knot(time_ns: int, state: Sample) -> Knot:
    return Knot(time_ns, state.position, state.velocity, state.acceleration)
