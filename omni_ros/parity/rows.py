# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One line of a comparison, and how it is judged."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

#: Largest difference where the host does the same arithmetic as the reference.
SAME = 1e-5
#: Largest difference of what float32 programs compute; a few roundings are 1e-6.
FLOAT32 = 1e-4


@dataclass(frozen=True)
class Row:
    """One tensor, or one input's effect.

    :param name: what was compared. :param difference: largest absolute one.
    :param relative: size of the difference over the size of the reference (2-norms).
    :param measured: the figure that is judged: "difference", "relative" or "ratio" (of an effect to
        the recorded one). :param value: that figure. :param tolerance: its limit; for a ratio how
        many times more or less is allowed. :param note: what else is worth knowing.
    """

    name: str
    difference: float
    relative: float
    measured: str
    value: float
    tolerance: float
    passed: bool
    note: str = ""

    def data(self) -> dict[str, Any]:
        """Return it for JSON; what is not finite becomes null."""
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in asdict(self).items()
        }


def compare(
    name: str, ours: np.ndarray, theirs: np.ndarray, tolerance: float, *, relative: bool = False,
    note: str = "",
) -> Row:
    """Return the row of two tensors.

    :param relative: whether `tolerance` is for the relative difference.
    """
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    measured = "relative" if relative else "difference"
    if ours.shape != theirs.shape:
        fact = f"shape {list(ours.shape)}, the reference has {list(theirs.shape)}"
        return Row(name, math.inf, math.inf, measured, math.inf, tolerance, False, fact)
    gap = ours - theirs
    largest = float(np.abs(gap).max()) if gap.size else 0.0
    scale = float(np.linalg.norm(theirs))
    share = float(np.linalg.norm(gap)) / scale if scale > 0 else (0.0 if largest == 0 else math.inf)
    value = share if relative else largest
    # A comparison with NaN is False: it does not pass.
    return Row(name, largest, share, measured, value, tolerance, bool(value <= tolerance), note)


def effect(name: str, moved: float, recorded: float, factor: float) -> Row:
    """Return the row of how far a changed input moves the actions.

    :param moved: largest change of an action here. :param recorded: in the reference.
    :param factor: how many times more or less is allowed.
    """
    ratio = moved / recorded if recorded > 0 else math.inf
    passed = bool(1.0 / factor <= ratio <= factor)
    gap = abs(moved - recorded)
    note = f"moves actions by {moved:.3g}, recorded {recorded:.3g}"
    return Row(name, gap, gap / recorded if recorded else math.inf, "ratio", ratio, factor, passed,
               note)
