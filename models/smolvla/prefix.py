# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Positions of the vision tower (numpy only). Those of the prefix are the host's part and so in
`omni_ros.policy.prefix`; their names are found here, too.
"""

from __future__ import annotations

import numpy as np

from omni_ros.policy.prefix import (
    EMPTY,
    END_MARKS,
    PRESENT,
    START_MARKS,
    UNUSED,
    PrefixLayout,
    action_rope,
    prefix_rope,
)

__all__ = [
    "EMPTY",
    "END_MARKS",
    "PRESENT",
    "START_MARKS",
    "UNUSED",
    "PrefixLayout",
    "action_rope",
    "prefix_rope",
    "vision_positions",
]


def vision_positions(rows: int, columns: int, side: int, *, shifted: bool = False) -> np.ndarray:
    """Row of the position table for each patch, int64 [rows * columns], row by row.

    side: the table's own side. `shifted` repeats transformers 4.55 to 4.57 in float32, where a
    factor just below one moved every row and column but the first up by one; a checkpoint trained
    with it may want it.
    """

    def buckets(count: int) -> np.ndarray:
        index = np.arange(count, dtype=np.int64) * side
        if shifted:
            return np.maximum(-(-index // count) - 1, 0)  # the largest boundary strictly below
        return index // count

    return (buckets(rows)[:, None] * side + buckets(columns)[None, :]).reshape(-1)
