# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The token table of a bundle: from token ids to the rows that a backbone takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..bundles.contents import STORED, open_table


class TokenTable:
    """An .npy file [rows, width], mapped: what is never looked up is never read.

    :raises BundleError: the file is no such table; with both shapes.
    """

    def __init__(self, path: Path, *, dtype: str, rows: int, width: int, count: int) -> None:
        """:param dtype: "float32", "float16" or "bfloat16". :param count: ids of one look-up."""
        self.path, self.rows, self.dtype = path, rows, dtype
        self._table = open_table(path, dtype=dtype, rows=rows, width=width)
        self._picked = np.empty((count, width), STORED[dtype])

    def look_up(self, ids: np.ndarray, out: np.ndarray) -> None:
        """Write the rows of `ids`, int64 [count], to `out`, float32 [count, width].

        :raises ValueError: an id that the table does not have.
        """
        if ids.min() < 0 or ids.max() >= self.rows:
            raise ValueError(
                f"token ids from {ids.min()} to {ids.max()}; {self.path} has the rows 0 to "
                f"{self.rows - 1}: is the tokenizer the checkpoint's own?"
            )
        np.take(self._table, ids, axis=0, out=self._picked, mode="clip")
        if self.dtype == "bfloat16":
            bits = out.view(np.uint32)
            np.copyto(bits, self._picked)
            np.left_shift(bits, 16, out=bits)
        else:
            np.copyto(out, self._picked)
