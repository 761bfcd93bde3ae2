# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is left of the last chunk when the next observation is made, for real-time chunking."""

from __future__ import annotations

import numpy as np


class Leftover:
    """Keeps the last chunk's normalised rows.

    Row k of a chunk is due at stamp + (k + 1) * dt, so rows are cut, and laid on the times of the
    new chunk's rows, by stamps alone. A chunk that the arm began late from rest is taken as if it
    had begun in time: by its second chunk that difference is gone.
    """

    def __init__(self, chunk: int, dt_ns: int) -> None:
        """:param chunk: rows. :param dt_ns: between two of them.

        :raises ValueError: either is not positive.
        """
        if chunk < 1 or dt_ns < 1:
            raise ValueError(f"chunk is {chunk} rows, dt {dt_ns} ns; expected both above 0")
        self._chunk, self._dt_ns = chunk, dt_ns
        self.forget()

    def keep(self, rows: np.ndarray, stamp_ns: int, instruction_seq: int) -> None:
        """Take a chunk that is being published: f32 [chunk, action], normalised; not copied."""
        self._rows, self._stamp_ns, self._instruction = rows, stamp_ns, instruction_seq

    def forget(self) -> None:
        """Drop it, as after a stop or a jump of the clock: the next chunk begins a new plan."""
        self._rows: np.ndarray | None = None
        self._stamp_ns, self._instruction = 0, 0

    def at(self, stamp_ns: int, instruction_seq: int) -> np.ndarray | None:
        """Return the rows not yet due at an observation's stamp, f32 [rows, action], row 0 first.

        Row j is what the old chunk meant for stamp + (j + 1) * dt, between two rows if need be.
        None if there is nothing to go on: none kept, another instruction, all of it past, or a
        clock that went back. What is of no use is forgotten.
        """
        if self._rows is None:
            return None
        passed_ns = stamp_ns - self._stamp_ns
        if (passed_ns <= 0 or passed_ns >= self._chunk * self._dt_ns
                or instruction_seq != self._instruction):
            self.forget()
            return None
        first, part_ns = divmod(passed_ns, self._dt_ns)
        rest = self._rows[first:]
        if part_ns == 0:
            return rest
        if len(rest) < 2:
            return None
        share = np.float32(part_ns / self._dt_ns)
        return rest[:-1] * (np.float32(1.0) - share) + rest[1:] * share
