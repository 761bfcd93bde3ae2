# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""When an action head is run again on the prefix that it has, and until when.

A head that takes the state itself (π0's) answers to newer joints without the backbone: often, since
it is small, while the prefix grows older with the pictures it was made of. So the age is bounded.
"""

from __future__ import annotations

from typing import Any


class HeldPrefix:
    """The newest prefix, of one thread. All times in nanoseconds, by the clock of the stamps."""

    def __init__(self, rate_hz: float, life_ns: int) -> None:
        """
        :param rate_hz: of the head's runs, those on a new prefix included.
        :param life_ns: age of the prefix's observation from which it is of no use any more.
        """
        self.period_ns, self.life_ns = round(1e9 / rate_hz), life_ns
        self.forget()

    def forget(self) -> None:
        """Hold nothing, as after a stop, or when its tensors are gone."""
        self.what: Any = None
        self.stamp_ns = self._due_ns = self._ran_ns = 0

    def take(self, what: Any, stamp_ns: int, now_ns: int) -> None:
        """Hold what was worked on now.

        :param what: whatever is needed to work on it again. :param stamp_ns: of its observation.
        """
        self.what, self.stamp_ns = what, stamp_ns
        self.ran(now_ns)

    def ran(self, now_ns: int) -> None:
        """The head has been run: the next time is a period later, and not in a burst if late."""
        due_ns = self._due_ns + self.period_ns
        self._due_ns = due_ns if now_ns < due_ns <= now_ns + self.period_ns else (
            now_ns + self.period_ns)
        self._ran_ns = now_ns

    def age_ns(self, now_ns: int) -> int | None:
        """Return the age of the prefix's observation, None while none is held."""
        return None if self.what is None else max(0, now_ns - self.stamp_ns)

    def wait_ns(self, now_ns: int) -> int | None:
        """Return how long until the head is due, 0 if it is, None if there is nothing to run.

        What has grown too old, or lies in the future since a clock went back, is forgotten.
        """
        if self.what is None:
            return None
        if not 0 <= now_ns - self.stamp_ns <= self.life_ns or now_ns < self._ran_ns:
            self.forget()
            return None
        return max(0, self._due_ns - now_ns)
