# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether to take the pictures that lie there, or to wait a moment for those just being taken."""

from __future__ import annotations

from typing import Any

#: Cameras of 10 Hz and more send a new picture within this; for slower ones nothing is gained.
PATIENCE_NS = 100_000_000


class Freshness:
    """When an observation comes due, the pictures at hand are up to a frame old already.

    The next ones are worth a wait: the chunk then starts from a newer moment, and its latency is what
    was computed, not how long a picture lay there. It is never waited when nothing is played.
    """

    def __init__(self, patience_ns: int = PATIENCE_NS, *, oldest_ns: int | None = None) -> None:
        """:param oldest_ns: age at which what was held back is of no use any more."""
        self._patience_ns, self._oldest_ns = patience_ns, oldest_ns
        self._held: Any = None

    def reset(self) -> None:
        """Forget what is held back."""
        self._held = None

    def choose(self, found: Any, *, due_ns: int, now_ns: int) -> Any:
        """Return the observation to begin with now, None to wait.

        :param found: a new one with its `stamp_ns`, None if there is none.
        :param due_ns: when it was due, 0 for at once.
        """
        if found is not None:
            self._held = found
        elif self._held is not None and self._oldest_ns is not None and (
                now_ns - self._held.stamp_ns > self._oldest_ns):
            self._held = None  # nobody asked for a while: the stages after this one were asleep
        if self._held is None:
            return None
        waited_ns = now_ns - due_ns
        if self._held.stamp_ns < due_ns and 0 <= waited_ns < self._patience_ns:
            return None
        chosen, self._held = self._held, None
        return chosen
