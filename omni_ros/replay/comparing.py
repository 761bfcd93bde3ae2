# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One chunk done again: the verdict on it, and where it first differs if it does."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from omni_ros.replay.changes import Change
from omni_ros.replay.locate import Place, by_names, guess, locate
from omni_ros.replay.plans import Plan
from omni_ros.replay.running import Done, Runner
from omni_ros.replay.verdict import ChunkVerdict, Kind, RowsVerdict, compare_rows

#: Doubts and changes that a text names; more would not be read.
_SHOWN = 2


class Judge:
    """Runs chunks again and compares. Only one that differs is looked into: that takes a second run."""

    def __init__(self, runner: Runner, tolerance: float | None, changes: Sequence[Change]) -> None:
        """
        :param tolerance: of actions and of tensors, relative; None: not a bit may differ.
        :param changes: what was changed since, for where fingerprints do not tell.
        """
        self._runner, self._tolerance, self._changes = runner, tolerance, changes

    def unknown(self, plan: Plan) -> ChunkVerdict:
        """Return the verdict on a chunk that cannot be computed again."""
        chunk = plan.chunk
        return ChunkVerdict(
            Kind.INCOMPLETE, chunk.chunk_id, chunk.stamp_ns, f"not in the bag: {'; '.join(plan.missing)}",
            missing=tuple(plan.missing), recorded=chunk.values, dt_ns=chunk.dt_ns,
            recorded_times=dict(chunk.timings))

    def impossible(self, plan: Plan, why: str, spent_s: float = 0.0) -> ChunkVerdict:
        """Return the verdict on a chunk that one of the sides gives no numbers for."""
        chunk = plan.chunk
        return ChunkVerdict(
            Kind.DIFFERENT, chunk.chunk_id, chunk.stamp_ns, why, worst=float("inf"),
            recorded=chunk.values, dt_ns=chunk.dt_ns, times={"policy": spent_s},
            recorded_times=dict(chunk.timings))

    def judge(self, plan: Plan, images: Mapping[str, np.ndarray]) -> ChunkVerdict:
        """Return the verdict on a chunk with its pictures."""
        chunk = plan.chunk
        began = time.perf_counter()
        try:
            done = self._runner.run(plan, images)
        except (ValueError, FloatingPointError) as error:
            return self.impossible(plan, f"cannot be computed: {error}", time.perf_counter() - began)
        replayed = by_names(done.actions.astype(np.float64), done.names, chunk.joint_names)
        if replayed is None:
            rows = RowsVerdict(Kind.DIFFERENT, float("inf"), np.zeros(0), 0, (
                f"it moves {', '.join(done.names)}; recorded were {', '.join(chunk.joint_names)}"))
        else:
            spread, centre = (by_names(of[None], done.names, chunk.joint_names)[0]
                              for of in (self._runner.spread, self._runner.centre))
            rows = compare_rows(chunk.values, replayed, tolerance=self._tolerance,
                                names=chunk.joint_names, spread=np.maximum(spread, 1e-12),
                                centre=centre)
        place, again = None, 0.0
        if rows.kind is not Kind.SAME:
            looked = self._runner.run(plan, images, look=True)
            again = looked.seconds["policy"]
            place = self._place(plan, done, looked, rows.kind)
        return self._verdict(plan, rows, place, replayed, done.seconds["policy"] + again)

    def _place(self, plan: Plan, done: Done, looked: Done, kind: Kind) -> Place | None:
        if not np.array_equal(done.normalised, looked.normalised, equal_nan=True):
            return Place("network", "two runs of the same observation differ here: the programs do not "
                         "repeat themselves on this machine")
        place = None
        if plan.recorded or plan.state is not None:
            state = looked.state if plan.fresh_state is None else plan.fresh_state
            place = locate(plan, looked, lambda n: self._runner.decode(n, state),
                           tolerance=self._tolerance)
        if place is not None or kind is not Kind.DIFFERENT:
            return place
        place = guess(plan, looked)
        if place is None and not plan.recorded:
            changed = [change for change in self._changes if change.stage]
            if changed:
                return Place(changed[0].stage, "as it seems: " + "; ".join(
                    map(str, changed[:_SHOWN])) + ". The recording has no fingerprints to tell by")
        return place

    def _verdict(self, plan: Plan, rows: RowsVerdict, place: Place | None,
                 replayed: np.ndarray | None, policy_s: float) -> ChunkVerdict:
        chunk, kind, text = plan.chunk, rows.kind, rows.text
        if kind is Kind.WITHIN and place is not None and place.host:
            kind = Kind.DIFFERENT
            text += "; but what differs is not the programs' rounding"
        if kind is Kind.DIFFERENT and plan.doubts:
            kind = Kind.INCOMPLETE
            text += "; it may have been decided from a picture that is not in the bag: " + "; ".join(
                plan.doubts[:_SHOWN])
        if place is not None:
            text = f"first at {place.stage} ({place.text}); {text}"
        elif kind is not Kind.SAME and not plan.recorded:
            text += "; where it began is not known: the bag holds chunks only"
        return ChunkVerdict(
            kind, chunk.chunk_id, chunk.stamp_ns, text, stage=place.stage if place else "",
            worst=rows.worst, by_joint=rows.by_joint, recorded=chunk.values, replayed=replayed,
            dt_ns=chunk.dt_ns, missing=tuple(plan.doubts) if kind is Kind.INCOMPLETE else (),
            times={"policy": policy_s}, recorded_times=dict(chunk.timings))
