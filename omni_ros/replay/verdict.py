# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether two chunks are the same, and what a whole recording comes to.

`same` is bit for bit. `within tolerance` is a difference that the bundle declares for another machine
or other versions. `incomplete` is not knowing, because something was not recorded; it is never called
different, and never the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np


class Kind(str, Enum):
    """A verdict; of two, the one further down is the worse."""

    SAME = "same"
    WITHIN = "within tolerance"
    INCOMPLETE = "incomplete"
    DIFFERENT = "different"


_ORDER = list(Kind)


@dataclass(frozen=True)
class RowsVerdict:
    """Two tables of actions compared.

    :param worst: the largest difference, each joint's divided by its spread; infinite for tables that
        cannot be compared. :param by_joint: f64 [joints], largest absolute difference, in units.
    :param first_row: that differs at all; None if none does.
    """

    kind: Kind
    worst: float
    by_joint: np.ndarray
    first_row: int | None
    text: str


def compare_rows(recorded: np.ndarray, replayed: np.ndarray, *, tolerance: float | None,
                 names: Sequence[str], spread: np.ndarray | None = None,
                 centre: np.ndarray | None = None) -> RowsVerdict:
    """Compare two chunks' actions.

    :param recorded, replayed: f64 [rows, joints], the same joints in the same order.
    :param tolerance: of the largest difference, relative to the largest value or 1, whichever is
        more; None if every bit has to be the same.
    :param names: of the joints, for the text.
    :param spread: [joints], what a difference is measured by: units of a joint to one of the network's,
        so that a gripper and a shoulder count alike. Ones if left out.
    :param centre: [joints], the joint's units where the network says 0: a joint that is far from 0 and
        hardly moves must not loosen the tolerance. Zeros if left out.
    """
    recorded, replayed = (np.asarray(table, np.float64) for table in (recorded, replayed))
    if recorded.shape != replayed.shape:
        text = (f"{_size(recorded)} recorded, {_size(replayed)} now")
        return RowsVerdict(Kind.DIFFERENT, math.inf, np.full(len(names), math.inf), 0, text)
    same = (recorded == replayed) | (np.isnan(recorded) & np.isnan(replayed))
    if same.all():
        return RowsVerdict(Kind.SAME, 0.0, np.zeros(len(names)), None, "the same, bit for bit")
    spread = np.ones(len(names)) if spread is None else np.asarray(spread, np.float64)
    centre = np.zeros(len(names)) if centre is None else np.asarray(centre, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.where(same, 0.0, np.abs(replayed - recorded))
        gap[~np.isfinite(gap)] = math.inf
        relative = gap / spread
        sizes = np.abs((recorded - centre) / spread)
        size = max(1.0, float(sizes[np.isfinite(sizes)].max(initial=0.0)))
    row, column = np.unravel_index(int(relative.argmax()), relative.shape)
    worst, first = float(relative[row, column]), int(np.flatnonzero(~same.all(axis=1))[0])
    text = (f"{names[column]} by {gap[row, column]:.2g} at row {row}, the first to differ is row "
            f"{first}")
    if tolerance is None or not worst <= tolerance * size:
        limit = "not a bit is allowed" if tolerance is None else f"allowed is {tolerance * size:.1e}"
        return RowsVerdict(Kind.DIFFERENT, worst, gap.max(axis=0), first,
                           f"{text}; {worst:.1e} of a spread, {limit}")
    return RowsVerdict(Kind.WITHIN, worst, gap.max(axis=0), first,
                       f"{text}; {worst:.1e} of a spread, within {tolerance * size:.1e}")


def _size(table: np.ndarray) -> str:
    return " x ".join(map(str, table.shape)) + " values"


@dataclass(frozen=True)
class ChunkVerdict:
    """One chunk of a recording, done again.

    :param stage: where it first differs, "" where it does not or where that is not known.
    :param missing: what was not recorded, in plain words. :param times: seconds by part.
    """

    kind: Kind
    chunk_id: int
    stamp_ns: int
    text: str
    stage: str = ""
    worst: float = 0.0
    by_joint: np.ndarray = field(default_factory=lambda: np.zeros(0))
    recorded: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    replayed: np.ndarray | None = None
    dt_ns: int = 0
    missing: tuple[str, ...] = ()
    times: dict[str, float] = field(default_factory=dict)
    recorded_times: dict[str, float] = field(default_factory=dict)


@dataclass
class Tally:
    """Verdicts as they come in, and what they come to."""

    verdicts: list[ChunkVerdict] = field(default_factory=list)

    def add(self, verdict: ChunkVerdict) -> None:
        """Take the next verdict."""
        self.verdicts.append(verdict)

    @property
    def counts(self) -> dict[str, int]:
        """Chunks by verdict, all four of them."""
        counted = Counter(verdict.kind for verdict in self.verdicts)
        return {kind.value: counted[kind] for kind in Kind}

    @property
    def overall(self) -> Kind:
        """The worst of them; incomplete if there is none at all."""
        return worst_of([verdict.kind for verdict in self.verdicts])

    @property
    def first(self) -> ChunkVerdict | None:
        """The first one that is different, None if none is."""
        return next((one for one in self.verdicts if one.kind is Kind.DIFFERENT), None)

    def text(self) -> str:
        """One line: how many of each, and where the first different one differs."""
        if not self.verdicts:
            return "incomplete: there was no chunk to compare"
        parts = [f"{count} {kind}" for kind, count in self.counts.items() if count]
        line = f"{self.overall.value}: {', '.join(parts)} of {len(self.verdicts)} chunks"
        first = self.first
        if first is not None:
            line += f"; chunk {first.chunk_id} first" + (f", at {first.stage}" if first.stage else "")
        return line


def worst_of(kinds: Sequence[Kind]) -> Kind:
    """Return the worst of some verdicts; incomplete if there are none."""
    return max(kinds, key=_ORDER.index, default=Kind.INCOMPLETE)
