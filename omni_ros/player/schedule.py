# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the chunks ask for at an instant: rows by wall clock, interpolation, switching."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from omni_ros.player.chunk import Chunk
from omni_ros.robot import PlayerConfig


def ensemble_weights(count: int, coeff: float) -> np.ndarray:
    """Weights exp(-coeff * i) of `count` actions for one instant, i = 0 the oldest, sum 1.

    LeRobot's temporal ensembling (from ACT): a positive coefficient favours older chunks.
    """
    weights = np.exp(-coeff * np.arange(count, dtype=np.float64))
    return weights / weights.sum()


@dataclass(frozen=True)
class LeadIn:
    """Where the arm comes from, for instants before row 0 is due. Arrays (n,)."""

    time_ns: int
    value: np.ndarray
    slope: np.ndarray  # per second


class Plan:
    """One chunk laid on the clock. Between rows: cubic Hermite with slopes from the rows.

    Slopes are central differences, so the curve passes through every row with a continuous
    velocity. Before row 0 the curve comes from the lead-in, or else continues the first rows
    backwards; after the last row it stays there.
    """

    def __init__(
        self, chunk: Chunk, *, start_ns: int, shift_ns: int = 0, lead_in: LeadIn | None = None
    ) -> None:
        """Lay `chunk` on the clock; `shift_ns` moves its rows and the end of its life."""
        self.chunk = chunk
        self.start_ns = start_ns
        self.first_ns = chunk.stamp_ns + shift_ns + chunk.dt_ns
        self.rows = chunk.values
        self.dt_s = chunk.dt_ns * 1e-9
        rows_end = self.first_ns + (len(self.rows) - 1) * chunk.dt_ns
        life_end = chunk.stamp_ns + shift_ns + chunk.life_ns
        self.end_ns = min(rows_end, life_end)
        self.cut_by_life = life_end < rows_end
        if len(self.rows) > 1:
            self.slopes = np.gradient(self.rows, self.dt_s, axis=0)
        else:
            self.slopes = np.zeros_like(self.rows)
        self.lead_in = lead_in if lead_in and self.first_ns > lead_in.time_ns else None

    def sample(self, times_ns: np.ndarray) -> np.ndarray:
        """Return values at int64 instants (k,) as float64 (k, n)."""
        # Differences are taken in integers: float64 cannot hold nanoseconds since 1970.
        after = np.minimum(times_ns, self.end_ns) - self.first_ns
        at = after * 1e-9 / self.dt_s
        row = np.clip(np.floor(at).astype(np.int64), 0, max(len(self.rows) - 2, 0))
        nxt = np.minimum(row + 1, len(self.rows) - 1)
        share = np.clip(at - row, 0.0, 1.0)[:, None]
        out = _hermite(
            share, self.dt_s, self.rows[row], self.slopes[row], self.rows[nxt], self.slopes[nxt]
        )
        early = after < 0
        if early.any():
            out[early] = self._before(after[early])
        return out

    def _before(self, after_ns: np.ndarray) -> np.ndarray:
        lead = self.lead_in
        ahead = after_ns[:, None] * 1e-9
        if lead is None:
            return self.rows[0] + ahead * self.slopes[0]
        length = (self.first_ns - lead.time_ns) * 1e-9
        share = 1.0 + ahead / length
        curve = _hermite(
            np.clip(share, 0.0, 1.0), length, lead.value, lead.slope, self.rows[0], self.slopes[0]
        )
        return np.where(share < 0.0, lead.value + share * length * lead.slope, curve)


def _hermite(
    s: np.ndarray, length: float, p0: np.ndarray, v0: np.ndarray, p1: np.ndarray, v1: np.ndarray
) -> np.ndarray:
    """Cubic from (p0, v0) at s = 0 to (p1, v1) at s = 1, `length` seconds later."""
    square = s * s
    cube = square * s
    bend = 3.0 * square - 2.0 * cube
    curve = (1.0 - bend) * p0 + bend * p1
    return curve + length * ((cube - 2.0 * square + s) * v0 + (cube - square) * v1)


class Schedule:
    """The chunks that are played now, newest last; at most `max_chunks` of them."""

    def __init__(self, config: PlayerConfig) -> None:
        """Take `switching`, `blend_s`, `ensemble_coeff` and `max_chunks` from the settings."""
        self._config = config
        self._blend_ns = round(config.blend_s * 1e9)
        # Beyond max_chunks the oldest falls out; its weight is the smallest or soonest over.
        self._plans: deque[Plan] = deque(maxlen=config.max_chunks)

    def __len__(self) -> int:
        return len(self._plans)

    def clear(self) -> None:
        """Forget all chunks."""
        self._plans.clear()

    def add(self, plan: Plan, now_ns: int) -> int:
        """Take the newest plan; returns how many of its rows were due already.

        An average of two policies is the plan of neither (left around it and right around it makes
        through it), so chunks of another source are let go of rather than averaged with. The lead-in
        and the limiter make the way there smooth, as for `latest`.
        """
        newest = self.newest
        other = newest is not None and newest.chunk.source != plan.chunk.source
        if self._config.switching == "latest" or (self._config.switching == "ensemble" and other):
            self._plans.clear()
        self._plans.append(plan)
        late = (now_ns - plan.first_ns) // plan.chunk.dt_ns + 1
        return min(max(late, 0), len(plan.rows))

    @property
    def newest(self) -> Plan | None:
        """The plan of the newest observation."""
        return self._plans[-1] if self._plans else None

    @property
    def end_ns(self) -> int:
        """Last instant for which something is asked."""
        if self._config.switching == "ensemble":
            return max(plan.end_ns for plan in self._plans)
        return self._plans[-1].end_ns

    def prune(self, now_ns: int) -> None:
        """Let go of plans that no longer count at `now_ns`."""
        plans = self._plans
        while len(plans) > 1:
            if self._config.switching == "ensemble":
                done = plans[0].end_ns < now_ns
            else:
                done = now_ns - plans[1].start_ns >= self._blend_ns
            if not done:
                return
            plans.popleft()

    def sample(self, times_ns: np.ndarray) -> np.ndarray:
        """Return what is asked for at int64 instants (k,), float64 (k, n)."""
        if self._config.switching == "ensemble" and len(self._plans) > 1:
            return self._ensemble(times_ns)
        out = self._plans[0].sample(times_ns)
        for plan in list(self._plans)[1:]:
            if self._blend_ns > 0:
                share = np.clip((times_ns - plan.start_ns) / self._blend_ns, 0.0, 1.0)[:, None]
            else:
                share = 1.0
            out = out + share * (plan.sample(times_ns) - out)
        return out

    def _ensemble(self, times_ns: np.ndarray) -> np.ndarray:
        plans = self._plans
        begins = np.array([p.first_ns if p.lead_in is None else p.lead_in.time_ns for p in plans])
        ends = np.array([p.end_ns for p in plans])
        covers = (begins[:, None] <= times_ns) & (times_ns <= ends[:, None])
        # Where no chunk reaches, the newest speaks for itself (its ends are extended).
        covers[-1, ~covers.any(axis=0)] = True
        rank = np.cumsum(covers, axis=0) - 1  # 0 = the oldest that reaches this instant
        weights = np.exp(-self._config.ensemble_coeff * rank) * covers
        weights /= weights.sum(axis=0)
        values = np.stack([plan.sample(times_ns) for plan in plans])
        return np.einsum("pk,pkn->kn", weights, values)
