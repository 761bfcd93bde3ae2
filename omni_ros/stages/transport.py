# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the next stage can reach this machine's memory, and how long it took to be reached."""

from __future__ import annotations

from dataclasses import dataclass

#: A hand-off that took longer says more of two clocks than of the way, seconds.
LONGEST_HAND_OFF_S = 60.0


@dataclass(frozen=True)
class Reader:
    """The next stage, as its status tells.

    :param scope: boot and PID namespace of its process. :param wants_inline: it has found that the
        rings cannot be reached, although the scope says so.
    """

    scope: str
    wants_inline: bool = False


def hand_over_inline(scope: str, reader: Reader | None) -> bool:
    """Return whether tensors have to go in the message.

    A reader that says nothing of itself gets them there: that is always right, only slower.

    :param scope: of this process; "" if the system does not tell.
    """
    if reader is None or not scope:
        return True
    return reader.scope != scope or reader.wants_inline


class Reach:
    """Whether the rings of the stage before can be reached from here; tried again now and then."""

    #: Hand-offs in a row whose ring could not be reached before the bytes are asked for inline.
    PATIENCE = 2
    #: How long they then come inline: at first, and at most, as it doubles.
    RETRY_NS, RARELY_NS = 30_000_000_000, 960_000_000_000

    def __init__(self) -> None:
        self._failures, self._since_ns, self._wait_ns = 0, 0, 0

    def wants_inline(self, mono_ns: int) -> bool:
        """Whether to ask for the bytes in the message. :param mono_ns: monotonic clock."""
        return self._failures >= self.PATIENCE and mono_ns - self._since_ns < self._wait_ns

    def note(self, reached: bool, mono_ns: int) -> None:
        """Note how it went with a hand-off by shared memory."""
        if reached:
            self._failures = self._wait_ns = 0
        elif not self.wants_inline(mono_ns):  # else it was under way before it was asked for
            self._failures += 1
            if self._failures >= self.PATIENCE:
                self._since_ns = mono_ns
                self._wait_ns = min(max(2 * self._wait_ns, self.RETRY_NS), self.RARELY_NS)


def hand_off_seconds(now_ns: int, handed_over_ns: int) -> float:
    """Return how long a hand-off took by two wall clocks, 0 if that cannot be.

    :param handed_over_ns: as the message says; 0 if its sender does not.
    """
    seconds = (now_ns - handed_over_ns) * 1e-9
    return seconds if 0.0 <= seconds <= LONGEST_HAND_OFF_S else 0.0
