# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The token table of a bundle: from token ids to the rows that a backbone takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

#: dtype of the file by the manifest's word; numpy has no bfloat16, its bits are kept instead.
STORED = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16}


class TokenTable:
    """An .npy file [rows, width], mapped: what is never looked up is never read.

    :raises ValueError: the file is no such table; with both shapes.
    """

    def __init__(self, path: Path, *, dtype: str, rows: int, width: int, count: int) -> None:
        """:param dtype: "float32", "float16" or "bfloat16". :param count: ids of one look-up."""
        try:
            table = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ValueError(f"{path}: is no readable .npy file ({error})") from error
        wanted = np.dtype(STORED[dtype])
        if not isinstance(table, np.ndarray) or (table.dtype, table.shape) != (
                wanted, (rows, width)):
            raise ValueError(
                f"{path}: is {getattr(table, 'dtype', None)} {list(getattr(table, 'shape', ()))}, "
                f"the manifest says {dtype} [{rows}, {width}], stored as {wanted}"
            )
        self.path, self.rows, self.dtype = path, rows, dtype
        # A plain array over the map: the memmap class makes objects at every use.
        self._table = table.view(np.ndarray)
        self._picked = np.empty((count, width), wanted)

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
