# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From chunks to commands: the schedule, the ramp and the limiter put together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from omni_ros.player.chunk import Chunk
from omni_ros.player.command import Command
from omni_ros.player.limiter import Limiter, Motion
from omni_ros.player.ramp import Ramp
from omni_ros.player.reasons import Reason
from omni_ros.player.schedule import LeadIn, Plan, Schedule
from omni_ros.robot import Robot

#: Velocity output: seconds in which the estimated position is drawn to the measured one.
_ESTIMATE_S = 0.25
#: Forward position output: after so many missed ticks the arm stands at the last position.
_STANDS_AFTER = 2


class Mover:
    """Knows where the command is, what is planned, and how to stop. Decides nothing."""

    def __init__(self, robot: Robot) -> None:
        """Reserve everything; raises ValueError if the robot's limits make stops endless."""
        config = robot.player
        self._robot = robot
        self._velocity_mode = config.velocity_mode
        self._trajectories = config.output == "joint_trajectory"
        self._lookahead = config.lookahead if self._trajectories else 1
        self._period_ns = config.period_ns
        self._limiter = Limiter(robot)
        self._schedule = Schedule(config)
        self._ramp = Ramp(config.ramp_in_s, len(robot.joints))
        self._span_ns = round(self._limiter.span_s * 1e9)
        offsets = np.array([-self._span_ns, 0, self._span_ns], dtype=np.int64)
        steps = np.arange(self._lookahead, dtype=np.int64) * self._period_ns
        self._offsets = (steps[:, None] + offsets).ravel()
        wide = robot.upper - robot.lower
        self._row_low, self._row_high = robot.lower - wide, robot.upper + wide
        if self._velocity_mode:
            self._row_low, self._row_high = -10.0 * robot.velocity, 10.0 * robot.velocity
        self._resume_tolerance = config.resume_tolerance * wide
        self._ahead: list[Motion] = []
        self._rebased = True
        self.joint_reasons = np.zeros(len(robot.joints), dtype=np.uint8)

    @property
    def motion(self) -> Motion | None:
        """The last command; None before there is one."""
        return self._limiter.motion

    @property
    def at_rest(self) -> bool:
        """True if the command does not move (or there is none)."""
        return self.motion is None or self.motion.at_rest

    @property
    def holding(self) -> bool:
        """True if the last command asks for no motion, neither now nor in what follows it."""
        return self.at_rest and not self._ahead

    @property
    def plan(self) -> Plan | None:
        """The plan of the newest chunk."""
        return self._schedule.newest

    @property
    def ramping(self) -> bool:
        """True while easing in."""
        return self._ramp.active

    def forget(self) -> None:
        """Have no command any more, and no chunks."""
        self.clear()
        self._ahead = []
        self._limiter.motion = None

    def clear(self) -> None:
        """Forget all chunks, but not the setpoints that went out with the last command."""
        self._schedule.clear()

    def rest_at(self, position: np.ndarray) -> None:
        """Start anew at rest."""
        self._limiter.rest_at(position)
        self._rebased = True

    def take_over(self, measured: np.ndarray) -> None:
        """Rest where the arm is, if it was moved while it was held.

        Only joints that were moved, and no grippers: their command is where they squeeze to.
        """
        held = self.motion.p
        moved = np.abs(measured - held) > self._resume_tolerance
        moved &= ~self._robot.is_gripper
        if moved.any():
            self.rest_at(np.where(moved, measured, held))

    def begin(self, measured: np.ndarray | None, now_ns: int) -> None:
        """Ease in from now on, from where the arm stands or will have stopped.

        `measured` is None if no measured pose may be believed now: then the command is where
        the arm is.
        """
        if self.at_rest and measured is not None:
            self.take_over(measured)
        end = self.motion.stop_p[:, -1]
        self._ramp.start(now_ns, np.zeros_like(end) if self._velocity_mode else end)

    def add(self, chunk: Chunk, now_ns: int, from_row_0: bool) -> int:
        """Play a chunk from now on; returns how many of its rows are late."""
        # Rows far outside would only overflow the arithmetic; the limiter sees them as outside.
        values = np.clip(chunk.values, self._row_low, self._row_high)
        chunk = replace(chunk, values=values, received_ns=now_ns)
        shift_ns = max(now_ns - chunk.stamp_ns, 0) if from_row_0 else 0
        motion = self.motion
        value, slope = (motion.v, motion.a) if self._velocity_mode else (motion.p, motion.v)
        lead_in = LeadIn(now_ns, value, slope)
        plan = Plan(chunk, start_ns=now_ns, shift_ns=shift_ns, lead_in=lead_in)
        return self._schedule.add(plan, now_ns)

    def ended(self, now_ns: int) -> Reason | None:
        """Return why the chunks ask for nothing one period from now, or None."""
        if now_ns + self._period_ns <= self._schedule.end_ns:
            return None
        return Reason.CHUNK_STALE if self.plan.cut_by_life else Reason.STARVED

    def catch_up(self, missed: int, measured: np.ndarray) -> None:
        """Account for what happened since the last command.

        A trajectory controller went on along the message through missed ticks. Behind a
        position controller the arm stopped at the last position: after two it stands, and starts
        from rest. With velocity output the position is an estimate, drawn to the measured one.
        """
        limiter = self._limiter
        if missed and self._trajectories:
            for _ in range(min(missed, limiter.periods + self._lookahead)):
                ahead = self._ahead.pop(0) if self._ahead else None
                limiter.motion = ahead or limiter.stop(limiter.motion)
        elif missed >= _STANDS_AFTER and not self._velocity_mode and not self.at_rest:
            limiter.rest_at(limiter.motion.p)
        if self._velocity_mode:
            share = 1.0 if self.at_rest else min(1.0, limiter.period_s / _ESTIMATE_S)
            limiter.shift(share * (measured - limiter.motion.p))

    def hold(self) -> None:
        """Brake, and at rest repeat the last command."""
        limiter = self._limiter
        limiter.reasons[:] = Reason.NONE
        limiter.motion = limiter.stop(limiter.motion)
        self._ahead = []

    def play(self, now_ns: int) -> None:
        """Take the next step towards what the chunks ask for, and plan those after it."""
        limiter, schedule = self._limiter, self._schedule
        schedule.prune(now_ns - self._span_ns)
        times = now_ns + self._offsets
        targets = self._ramp.apply(times, schedule.sample(times))
        follow = limiter.follow_velocity if self._velocity_mode else limiter.follow
        limiter.motion = last = follow(limiter.motion, targets[:3])
        self._ahead = []
        for step in range(1, self._lookahead):
            if now_ns + (step + 1) * self._period_ns > schedule.end_ns:
                break
            last = follow(last, targets[3 * step : 3 * step + 3], ahead=True)
            self._ahead.append(last)

    def command(self, periods: int) -> Command:
        """Return the command of this tick with the plan and the stop that follow it."""
        limiter, motion = self._limiter, self.motion
        self.joint_reasons = limiter.reasons.copy()
        self.joint_reasons[limiter.outside()] = Reason.OUT_OF_LIMITS
        last = self._ahead[-1] if self._ahead else motion
        rows = _stop_rows(last)
        n = len(motion.p)
        rebased, self._rebased = self._rebased, False
        return Command(
            position=motion.p,
            velocity=motion.v,
            acceleration=motion.a,
            ahead_position=np.array([m.p for m in self._ahead]).reshape(-1, n),
            ahead_velocity=np.array([m.v for m in self._ahead]).reshape(-1, n),
            tail_position=last.stop_p[:, :rows].T,
            tail_velocity=last.stop_v[:, :rows].T,
            joint_reasons=self.joint_reasons,
            periods=periods,
            rebased=rebased,
        )


def _stop_rows(motion: Motion) -> int:
    """Rows of the stop up to the first that stays at rest."""
    if motion.at_rest:
        return 0
    moving = np.flatnonzero(motion.stop_v.any(axis=0))
    return min(int(moving[-1]) + 2 if len(moving) else 1, motion.stop_v.shape[1])
