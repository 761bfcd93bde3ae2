# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Remote rows while the robot runs: are they inside the robot's limits, and do they agree with ours?"""

from __future__ import annotations

import hashlib
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..policy.noise import noise
from .dialect import Dialect
from .replies import noise_shape, texts

#: Chunks kept to be paired, of each side.
KEPT = 16


def drawing(
    metadata: Mapping[str, Any], dialect: Dialect, *, seed: int, stamp_ns: int
) -> tuple[dict[str, Any], bool]:
    """Return what a request says of its noise, so that a remote draws as the local policy did.

    A server that takes noise gets the same. One that only takes a seed (vLLM-Omni's π0.5 and GR00T)
    draws other noise from it, but the same each time: a difference can be looked at again. To a server
    that may not know the word nothing is sent, as it would be an unknown input of its policy.

    :param metadata: of the server. :param seed, stamp_ns: of the local chunk.
    :return: keys of the request, and whether both policies have the same noise.
    """
    takes, shape = texts(metadata.get("takes")), noise_shape(metadata)
    if "noise" in takes and shape is not None:
        return {"noise": noise(shape, seed=seed, stamp_ns=stamp_ns)}, True
    if "seed" in takes or (not takes and dialect is Dialect.VLLM):
        digest = hashlib.sha256(f"{seed}:{stamp_ns}".encode()).digest()
        return {"seed": int.from_bytes(digest[:4], "little") >> 1}, False
    return {}, False


def outside(
    rows: np.ndarray, *, lower: np.ndarray, upper: np.ndarray, velocity: np.ndarray,
    names: Sequence[str], slack: float, control_mode: str = "position",
    anchor: np.ndarray | None = None,
) -> str | None:
    """Return why rows are no motion of this robot; None if they could be one.

    This throws away what is plainly of another robot or unit. Keeping within limits is the player's.

    :param rows: f64 [rows, joints] in topic units. :param slack: share of a joint's range that rows
        may leave it by; of its largest velocity in velocity mode.
    :param anchor: [joints], positions of the observation; for "position_offset".
    """
    if control_mode == "velocity":
        low, high, values, what = -velocity, velocity, rows, "velocity"
    else:
        values = rows if control_mode == "position" else rows + anchor
        low, high, what = lower, upper, "position"
    room = slack * (high - low)
    beyond = np.maximum(values - (high + room), (low - room) - values)
    if not np.isfinite(values).all():
        return "rows that are not finite"
    if (beyond <= 0.0).all():
        return None
    row, joint = np.unravel_index(int(beyond.argmax()), beyond.shape)
    return (
        f"row {row} moves {names[joint]} to the {what} {values[row, joint]:.3g}; its limits are "
        f"{low[joint]:.3g} to {high[joint]:.3g}: check units and order of the columns"
    )


@dataclass(frozen=True)
class Difference:
    """Of two chunks from one observation.

    :param gap: f64 [rows, joints], absolute; at the rows of the coarser chunk.
    """

    stamp_ns: int
    gap: np.ndarray

    @property
    def by_joint(self) -> np.ndarray:
        """Largest difference of each joint, f64 [joints]."""
        return self.gap.max(axis=0)

    @property
    def by_row(self) -> np.ndarray:
        """Largest difference of each row, f64 [rows]."""
        return self.gap.max(axis=1)


class ParityMeter:
    """Pairs chunks of both policies by the stamp of their observation; whichever comes first waits.

    Memory is bounded: of each side the last 16 that have no partner are kept, and of differences
    the last `window`.
    """

    def __init__(self, window: int = 100) -> None:
        self._waiting: tuple[OrderedDict, OrderedDict] = (OrderedDict(), OrderedDict())
        self._last: deque[Difference] = deque(maxlen=window)
        #: Chunks of each side that were given up on, local first.
        self.unpaired = [0, 0]
        #: Pairs that differed in joints, so that nothing could be compared.
        self.mismatched = 0

    def local(self, stamp_ns: int, rows: np.ndarray, period_s: float) -> Difference | None:
        """Take a chunk of the local policy; return the difference if its partner is there.

        :param rows: f64 [rows, joints], topic units. :param period_s: time between two rows.
        """
        return self._take(0, stamp_ns, rows, period_s)

    def remote(self, stamp_ns: int, rows: np.ndarray, period_s: float) -> Difference | None:
        """Take a chunk of the remote policy; as :meth:`local`."""
        return self._take(1, stamp_ns, rows, period_s)

    def summary(self) -> tuple[int, np.ndarray, np.ndarray] | None:
        """Return the number of pairs in the window, and the largest and the mean difference of each
        joint over them, f64 [joints]; None before the first."""
        if not self._last:
            return None
        largest = np.max([pair.by_joint for pair in self._last], axis=0)
        mean = np.mean([pair.gap.mean(axis=0) for pair in self._last], axis=0)
        return len(self._last), largest, mean

    def clear(self) -> None:
        """Forget all chunks and differences: at a change of instruction, mapping or mode."""
        for side in self._waiting:
            side.clear()
        self._last.clear()

    def _take(self, side: int, stamp_ns: int, rows: np.ndarray, period_s: float) -> Difference | None:
        partner = self._waiting[1 - side].pop(stamp_ns, None)
        if partner is None:
            own = self._waiting[side]
            own[stamp_ns] = (np.array(rows, np.float64), period_s)
            if len(own) > KEPT:
                own.popitem(last=False)
                self.unpaired[side] += 1
            return None
        other, other_period = partner
        if other.shape[1] != rows.shape[1]:
            self.mismatched += 1
            return None
        pair = [(np.asarray(rows, np.float64), period_s), (other, other_period)]
        pair.sort(key=lambda chunk: chunk[1])
        difference = Difference(stamp_ns, _gap(*pair[0], *pair[1]))
        self._last.append(difference)
        return difference


def _gap(fine: np.ndarray, fine_s: float, coarse: np.ndarray, coarse_s: float) -> np.ndarray:
    """Return absolute differences at the instants of the coarser chunk that the finer one covers.

    Row k is due (k + 1) periods after the observation.
    """
    if fine_s == coarse_s:
        rows = min(len(fine), len(coarse))
        return np.abs(fine[:rows] - coarse[:rows])
    due = (np.arange(len(coarse)) + 1) * coarse_s
    due = due[(due >= fine_s - 1e-9) & (due <= len(fine) * fine_s + 1e-9)]
    if not len(due):
        return np.zeros((1, fine.shape[1]))
    place = np.clip(due / fine_s - 1.0, 0.0, len(fine) - 1)
    below = np.floor(place + 1e-9).astype(int)
    above = np.minimum(below + 1, len(fine) - 1)
    share = np.clip(place - below, 0.0, 1.0)[:, None]
    index = np.rint(due / coarse_s).astype(int) - 1
    return np.abs(fine[below] * (1 - share) + fine[above] * share - coarse[index])
