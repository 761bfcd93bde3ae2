# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joint positions of the last moments, from any number of publishers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

#: Sets of joints that come in one message; the one not heard for longest is forgotten.
_MOST_GROUPS = 16
#: Messages kept of each, whatever the rate.
_MOST_SAMPLES = 1024


class _Sample(NamedTuple):
    stamp_ns: int  # 0: none was set
    received_ns: int
    positions: Sequence[float]


@dataclass(frozen=True)
class Pose:
    """All joints near one instant.

    :param positions: float64 [joints]. :param spread_ns: how far the farthest sample is from the
        instant. :param oldest_ns, newest_ns: their stamps. :param received_ns: when the one that
        came first came.
    """

    positions: np.ndarray
    spread_ns: int
    oldest_ns: int
    received_ns: int


class JointHistory:
    """Samples by stamp. Messages are kept as they came and looked into when asked."""

    def __init__(self, joints: Sequence[str], *, span_ns: int) -> None:
        """:param joints: names, in the order of a pose. :param span_ns: how far back to keep."""
        self.joints = tuple(joints)
        self._column = {name: index for index, name in enumerate(self.joints)}
        self._span_ns = span_ns
        self._groups: dict[tuple[str, ...], tuple[list[tuple[int, int]], deque[_Sample]]] = {}

    def clear(self) -> None:
        """Forget all."""
        self._groups.clear()

    def add(self, names: Sequence[str], positions: Sequence[float], stamp_ns: int, received_ns: int
            ) -> None:
        """Take a joint state. One that has fewer positions than names counts for the first ones."""
        key = tuple(names[:len(positions)])
        group = self._groups.pop(key, None)
        if group is None:
            wanted = [(self._column[name], at) for at, name in enumerate(key)
                      if name in self._column]
            if not wanted:
                return
            group = wanted, deque(maxlen=_MOST_SAMPLES)
            if len(self._groups) >= _MOST_GROUPS:
                del self._groups[next(iter(self._groups))]
        self._groups[key] = group  # last: heard most recently
        samples = group[1]
        samples.append(_Sample(stamp_ns, received_ns, positions))
        while received_ns - samples[0].received_ns > self._span_ns and len(samples) > 1:
            samples.popleft()

    def nearest(self, stamp_ns: int, offset_ns: int, *, until_ns: int) -> Pose | None:
        """Return each joint's sample nearest to an instant; None if one has no finite sample.

        :param offset_ns: from times of receipt to stamps, for samples without a stamp.
        :param until_ns: samples stamped later than this are passed over: it has not been yet.
        """
        positions = np.full(len(self.joints), math.nan)
        far = np.full(len(self.joints), np.iinfo(np.int64).max)
        stamps, received = np.zeros((2, len(self.joints)), np.int64)
        for wanted, samples in self._groups.values():
            timed = ((s.stamp_ns or s.received_ns + offset_ns, s) for s in samples)
            ranked = sorted(
                ((abs(time_ns - stamp_ns), time_ns, s) for time_ns, s in timed
                 if time_ns <= until_ns), key=lambda entry: entry[0],
            )
            for column, at in wanted:
                for distance, time_ns, sample in ranked:
                    if distance >= far[column]:
                        break
                    if math.isfinite(sample.positions[at]):
                        far[column], positions[column] = distance, sample.positions[at]
                        stamps[column], received[column] = time_ns, sample.received_ns
                        break
        if not np.isfinite(positions).all():
            return None
        return Pose(positions, int(far.max()), int(stamps.min()), int(received.min()))

    def missing(self) -> tuple[str, ...]:
        """Return the joints of which there is no finite sample."""
        found = {
            column for wanted, samples in self._groups.values() for column, at in wanted
            if any(math.isfinite(sample.positions[at]) for sample in samples)
        }
        return tuple(name for column, name in enumerate(self.joints) if column not in found)

    def newest(self, offset_ns: int) -> tuple[int, int, tuple[str, ...]]:
        """Return stamp, time of receipt and joints of the group that is furthest behind."""
        last = [
            (samples[-1].stamp_ns or samples[-1].received_ns + offset_ns, samples[-1].received_ns,
             tuple(self.joints[column] for column, _ in wanted))
            for wanted, samples in self._groups.values()
        ]
        return min(last)
