# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command limiter: no command leaves the limits, and a stop within them is always at hand.

The state is the last command sent, as differences: v(k) = (p(k) - p(k-1)) / T, a(k) likewise of
v, j(k) of a. A state is *viable* if the quickest stop from it (see stopping.py) stays inside the
limits of position and velocity; acceleration and jerk it keeps by construction. The invariant
is that the last command is viable and its stop is kept. A step then is a choice: towards the
target as far as wished (share 1), the first step of the kept stop (share 0), or a mixture; the
largest share that leads to a viable state wins. Share 0 always does, since the rest of a stop
that fits is a stop that fits. So the limits hold by induction, whatever the targets are.

A limited step keeps its direction: joints of the arm share one factor at each level (velocity,
acceleration, jerk, share of the stop). Grippers are limited apart, so that a closing jaw never
slows the arm, and so is a joint that cannot move at all, so that it does not freeze the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omni_ros.player.reasons import Reason
from omni_ros.player.stopping import Stopping
from omni_ros.robot import Robot

#: Shares of the wished step that are tried, largest first; 0 is the kept stop itself.
_SHARES = np.array([1.0, 0.9, 0.7, 0.5, 0.3, 0.15, 0.05])
#: For setpoints planned ahead a coarser choice will do: they are decided again next tick.
_SHARES_AHEAD = np.array([1.0, 0.5])
#: A joint that speeds up keeps at least this share of its own acceleration and jerk, however
#: little the slowest joint of the arm has: with none, the noise of one joint would stall all.
_OWN_SHARE = 0.25
_LONGEST_SPAN_S = 0.25
#: Fraction of the limits that targets may use, so that rounding never makes a good step fail.
_ALMOST = 1.0 - 1e-9


@dataclass
class Motion:
    """A commanded state and its stop. Arrays (n,); those of the stop (n, periods)."""

    p: np.ndarray
    v: np.ndarray
    a: np.ndarray
    stop_p: np.ndarray
    stop_v: np.ndarray
    stop_a: np.ndarray

    @property
    def at_rest(self) -> bool:
        """True if neither moving nor about to: the next commands are identical."""
        return not (self.v.any() or self.a.any())


class Limiter:
    """Steps from command to command within the limits of a robot. All arrays float64 (n,)."""

    def __init__(self, robot: Robot) -> None:
        """Reserve memory; raises ValueError if the limits make stops longer than 1000 periods."""
        self.period_s = robot.player.period_s
        self.lower = robot.lower + robot.margin
        self.upper = robot.upper - robot.margin
        self.velocity = np.array(robot.velocity)
        self.acceleration = np.array(robot.acceleration)
        self.jerk = np.array(robot.jerk)
        self._arm = ~robot.is_gripper
        self._slack = 1e-7 * (self.upper - self.lower)
        self._stopping = Stopping(self.velocity, self.acceleration, self.jerk, self.period_s)
        self.periods = self._stopping.periods
        # Time to build up the full acceleration: what a joint can follow is slower than this.
        rise = self.acceleration / self.jerk
        #: Targets are differenced over this time, seconds: noise from row to row that the jerk
        #: limit could not follow anyway is averaged out instead of chased.
        self.span_s = float(np.clip(1.6 * rise.max(), self.period_s, _LONGEST_SPAN_S))
        self._gain = np.minimum(0.5 / rise, 0.5 / self.period_s)
        self._gain_v = np.minimum(1.5 / rise, 1.0 / self.period_s)
        # Approach to a target: linear near it, else so that half of the deceleration suffices.
        self._slow = 0.5 * self.acceleration
        self._near = self._slow / self._gain**2
        # Acceleration that can be let go again in time, with a fifth of the jerk in hand.
        self._let_go = 0.8 * self.jerk
        self._let_go_step = self._let_go * self.period_s
        self.reasons = np.zeros(len(self.lower), dtype=np.uint8)
        self._ahead_reasons = np.zeros_like(self.reasons)
        self.motion: Motion | None = None

    def rest_at(self, position: np.ndarray) -> None:
        """Start at rest in `position`, which may be outside the limits."""
        self.motion = self._rest(position)

    def _rest(self, position: np.ndarray) -> Motion:
        p = np.array(position, dtype=np.float64)
        if not np.isfinite(p).all():
            raise ValueError(f"position is {p}, expected finite values")
        zero = np.zeros_like(p)
        still = np.zeros((len(p), self.periods))
        return Motion(p, zero, zero.copy(), np.repeat(p[:, None], self.periods, 1), still, still)

    def shift(self, offset: np.ndarray) -> None:
        """Move the commanded position and its stop by `offset`, keeping the velocities.

        For velocity output, where the position is only estimated.
        """
        motion = self.motion
        self.motion = Motion(
            motion.p + offset, motion.v, motion.a,
            motion.stop_p + offset[:, None], motion.stop_v, motion.stop_a,
        )  # fmt: skip

    def outside(self) -> np.ndarray:
        """Joints whose command is outside of the position limits, bool (n,)."""
        p = self.motion.p
        return (p < self.lower - self._slack) | (p > self.upper + self._slack)

    def stop(self, motion: Motion) -> Motion:
        """Return the next state of the kept stop; at rest, the same state."""
        if motion.at_rest:
            return motion
        return Motion(
            motion.stop_p[:, 0], motion.stop_v[:, 0], motion.stop_a[:, 0],
            _later(motion.stop_p), _later(motion.stop_v), _later(motion.stop_a),
        )  # fmt: skip

    def follow(self, motion: Motion, targets: np.ndarray, ahead: bool = False) -> Motion:
        """Return the next state towards positions.

        `targets` (3, n) are what the plan asks for at span_s before `motion`, at it, and span_s
        after it. Targets that are not finite stop. Writes `reasons` unless `ahead`.
        """
        notes = self._notes(ahead)
        if not np.isfinite(targets).all():
            notes[:] = Reason.NON_FINITE
            return self.stop(motion)
        before, now, after = np.clip(targets, self.lower + self._slack, self.upper - self._slack)
        _note(notes, np.abs(now - targets[1]) > 2.0 * self._slack, Reason.POSITION_LIMIT)
        feed = (after - 2.0 * now + before) / self.span_s**2
        step = (after - before) / (2.0 * self.span_s) + 0.5 * self.period_s * feed
        error = now - motion.p
        wish = step + self._share_gain(error) * error
        return self._towards(motion, wish, feed, notes, _SHARES_AHEAD if ahead else _SHARES)

    def follow_velocity(self, motion: Motion, targets: np.ndarray, ahead: bool = False) -> Motion:
        """Return the next state towards velocities; otherwise as `follow`.

        Near a position limit the velocity towards it is reduced, to zero at the limit.
        """
        notes = self._notes(ahead)
        if not np.isfinite(targets).all():
            notes[:] = Reason.NON_FINITE
            return self.stop(motion)
        feed = (targets[2] - targets[0]) / (2.0 * self.span_s)
        wish = targets[1] + self.period_s * feed
        most = self._approach(np.maximum(self.upper - self._slack - motion.p, 0.0))
        least = -self._approach(np.maximum(motion.p - self.lower - self._slack, 0.0))
        inside = np.minimum(np.maximum(wish, least), most)
        limited = inside != wish
        _note(notes, limited, Reason.POSITION_LIMIT)
        feed = np.where(limited, 0.0, feed)
        return self._towards(motion, inside, feed, notes, _SHARES_AHEAD if ahead else _SHARES)

    def _notes(self, ahead: bool) -> np.ndarray:
        notes = self._ahead_reasons if ahead else self.reasons
        notes[:] = Reason.NONE
        return notes

    def _approach(self, distance: np.ndarray) -> np.ndarray:
        """Speed from which to stop within `distance`, both 0 or above."""
        far = np.sqrt(self._slow * np.maximum(2.0 * distance - self._near, 0.0))
        return np.where(distance <= self._near, self._gain * distance, far)

    def _share_gain(self, error: np.ndarray) -> np.ndarray:
        """Gain on the error: the smallest of the arm's joints for all of them (direction)."""
        size = np.maximum(np.abs(error), 1e-12)
        gain = self._approach(size) / size
        return np.where(self._arm, gain[self._arm].min(initial=np.inf), gain)

    def _towards(
        self,
        motion: Motion,
        wish: np.ndarray,
        feed: np.ndarray,
        notes: np.ndarray,
        shares: np.ndarray,
    ) -> Motion:
        """Next state for a wished velocity and the acceleration fed forward."""
        period = self.period_s
        # Velocity: scale all of the arm alike.
        ratio = self.velocity * _ALMOST / np.maximum(np.abs(wish), 1e-12)
        _note(notes, ratio < 1.0, Reason.VELOCITY_LIMIT)
        ratio = np.minimum(ratio, 1.0)
        wish = wish * np.where(self._arm, ratio[self._arm].min(initial=1.0), ratio)
        # Acceleration: no more than can be let go again in time, all of the arm alike when
        # speeding up; a joint that has to slow down is never held back by another.
        feed = np.clip(feed, -self.acceleration, self.acceleration)
        rest = wish - motion.v - feed * period
        size = np.maximum(np.abs(rest), 1e-12)
        unit = self._let_go_step
        pull = 0.5 * (np.sqrt(unit * unit + 8.0 * self._let_go * size) - unit)
        pull = np.minimum(pull, self._gain_v * size)
        room = np.maximum(self.acceleration * _ALMOST - np.copysign(feed, feed * rest), 0.0)
        _note(notes, pull > room, Reason.ACCELERATION_LIMIT)
        faster = self._arm & (rest * wish > 0.0)
        factor = _shared(np.minimum(pull, room) / size, faster)
        jerk = (feed + factor * rest - motion.a) / period
        # Jerk likewise.
        ratio = self.jerk * _ALMOST / np.maximum(np.abs(jerk), 1e-12)
        _note(notes, ratio < 1.0, Reason.JERK_LIMIT)
        jerk = jerk * _shared(np.minimum(ratio, 1.0), faster & (jerk * rest > 0.0))
        a = np.clip(motion.a + jerk * period, -self.acceleration, self.acceleration)
        return self._choose(motion, a, notes, shares)

    def _choose(
        self, motion: Motion, wish: np.ndarray, notes: np.ndarray, shares: np.ndarray
    ) -> Motion:
        """Take the largest share of the wished acceleration that leaves a viable state."""
        stop_p, stop_v, stop_a = motion.stop_p, motion.stop_v, motion.stop_a
        brake = stop_a[:, 0]
        a0 = brake + shares[:, None] * (wish - brake)
        v0 = motion.v + a0 * self.period_s
        a, v, fits = self._stopping.plan(v0, a0)
        p0 = motion.p + v0 * self.period_s
        p = p0[..., None] + np.cumsum(v, axis=-1) * self.period_s
        # A start outside the limits widens them as far as its own stop: only inward from there.
        lower = np.minimum(self.lower, np.minimum(motion.p, stop_p.min(axis=-1)))
        upper = np.maximum(self.upper, np.maximum(motion.p, stop_p.max(axis=-1)))
        inside = np.minimum(p.min(axis=-1), p0) >= lower
        inside &= np.maximum(p.max(axis=-1), p0) <= upper
        slow = np.maximum(np.abs(v).max(axis=-1), np.abs(v0)) <= self.velocity
        good = fits & inside & slow
        if not good[0].all():
            _note(notes, ~inside[0], Reason.POSITION_LIMIT)
            _note(notes, ~good[0], Reason.VELOCITY_LIMIT)
        pick = self._pick(motion, good)
        n = np.arange(len(pick))
        chosen = np.minimum(pick, len(shares) - 1)
        state = Motion(
            p0[chosen, n], v0[chosen, n], a0[chosen, n],
            p[chosen, n], v[chosen, n], a[chosen, n],
        )  # fmt: skip
        kept = pick == len(shares)
        if kept.any():
            rest = self.stop(motion)
            for name in ("p", "v", "a", "stop_p", "stop_v", "stop_a"):
                getattr(state, name)[kept] = getattr(rest, name)[kept]
        return state

    def _pick(self, motion: Motion, good: np.ndarray) -> np.ndarray:
        """Index of the share for each joint; one past the last means the kept stop."""
        none = len(good)
        own = np.where(good.any(axis=0), np.argmax(good, axis=0), none)
        stuck = (own == none) & (motion.v == 0.0) & (motion.a == 0.0)
        together = self._arm & ~stuck
        if together.any():
            good_all = good[:, together].all(axis=1)
            own[together] = np.argmax(good_all) if good_all.any() else none
        return own


def _note(notes: np.ndarray, where: np.ndarray, reason: Reason) -> None:
    """Write a reason for the joints that have none yet: the first in the filter's order counts."""
    notes[where & (notes == Reason.NONE)] = reason


def _shared(factor: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Give joints of `group` the smallest factor among them, or a share of their own."""
    least = factor[group].min(initial=np.inf)
    return np.where(group, np.maximum(np.minimum(factor, least), _OWN_SHARE * factor), factor)


def _later(stop: np.ndarray) -> np.ndarray:
    """Shift a stop by one period; its last state lasts."""
    return np.concatenate((stop[:, 1:], stop[:, -1:]), axis=1)
