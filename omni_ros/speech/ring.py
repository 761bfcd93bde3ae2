# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The samples that a sound card is yet to play: one thread writes, the sound callback reads.

Positions only grow, and each is set by one side, so there is no lock that the callback could wait
for. They are Python integers: the interpreter's lock, which the callback needs anyway, orders them.
"""

from __future__ import annotations

import numpy as np


class SampleRing:
    """A ring of float32 samples. `read` is the callback's, `written` and `skip_to` the writer's."""

    def __init__(self, capacity: int) -> None:
        """:param capacity: samples; more than that cannot wait."""
        if capacity < 1:
            raise ValueError(f"capacity is {capacity}; expected at least 1 sample")
        self._samples = np.zeros(capacity, np.float32)
        self.written = self.read = self.skip_to = 0

    @property
    def waiting(self) -> int:
        """Samples that are yet to be played."""
        return self.written - max(self.read, self.skip_to)

    @property
    def room(self) -> int:
        """Samples that can be written now."""
        return len(self._samples) - (self.written - self.read)

    def write(self, samples: np.ndarray) -> int:
        """Append as much as there is room for; return how many samples that were."""
        count = min(len(samples), self.room)
        begin = self.written % len(self._samples)
        head = min(count, len(self._samples) - begin)
        self._samples[begin:begin + head] = samples[:head]
        self._samples[:count - head] = samples[head:count]
        self.written += count  # last: only now may the callback read them
        return count

    def clear(self) -> None:
        """Drop what waits; samples written later are played."""
        self.skip_to = self.written

    def fill(self, out: np.ndarray) -> int:
        """Fill a block to be played, with silence behind what there is; return the samples taken.

        For the callback only.
        """
        begin = max(self.read, self.skip_to)
        count = min(len(out), self.written - begin)
        at = begin % len(self._samples)
        head = min(count, len(self._samples) - at)
        out[:head] = self._samples[at:at + head]
        out[head:count] = self._samples[:count - head]
        out[count:] = 0.0
        self.read = begin + count
        return count
