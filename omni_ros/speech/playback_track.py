# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How far an utterance has been played: by the sound card's reports, or by the clock without one."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: A report is believed to go on for this long, seconds; behind that the card may stand still.
EXTRAPOLATE_S = 0.1


@dataclass
class Track:
    """One utterance on its way to the ear. Samples are the voice's, times monotonic nanoseconds.

    :param device: whether a sound card plays it; else the clock does, and nobody hears it.
    """

    number: int
    rate: float
    device: bool
    written: int = 0
    ended: bool = False
    paused: bool = False
    cleared: bool = False
    #: The order that begins it, while the card's process had no room for it.
    unsent: bytes = b""
    #: Why the card was lost, if it was.
    lost: str = ""
    played: float = 0.0
    at_ns: int = 0
    first_ns: int = 0
    done_ns: int = 0
    #: Times, and seconds, that the card had nothing to play although more was to come.
    dry: int = 0
    dry_s: float = 0.0
    longest_dry_s: float = 0.0
    _lock: Any = field(default_factory=threading.RLock, repr=False)

    @property
    def over(self) -> bool:
        """Whether nothing of it will be heard any more."""
        return self.cleared or bool(self.lost) or 0 < self.done_ns <= time.monotonic_ns()

    def wrote(self, count: int, now_ns: int) -> None:
        """Take note of samples that were handed over."""
        with self._lock:
            if not self.device and not self.first_ns and count:
                self.first_ns = self.at_ns = now_ns
            self.advance(now_ns)
            self.paused = False
            self.written += count

    def end(self, now_ns: int) -> None:
        """Take note that no more will come."""
        with self._lock:
            self.advance(now_ns)
            self.ended = True
            if not self.device and not self.written:
                self.done_ns = now_ns

    def report(self, fields: Mapping[str, Any]) -> None:
        """Take over what the card's process says."""
        with self._lock:
            self.played, self.at_ns = float(fields["played"]), int(fields["at_ns"])
            self.first_ns, self.done_ns = int(fields["first_ns"]), int(fields["done_ns"])
            self.dry, self.dry_s = int(fields["dry"]), float(fields["dry_s"])
            self.longest_dry_s = float(fields["longest_dry_s"])

    def advance(self, now_ns: int) -> None:
        """Let the clock play, where it does."""
        with self._lock:
            self._advance(now_ns)

    def _advance(self, now_ns: int) -> None:
        if self.device or not self.first_ns or self.done_ns or self.cleared:
            return
        reached = self.played + (now_ns - self.at_ns) * 1e-9 * self.rate
        if reached >= self.written:
            short_s = (reached - self.written) / self.rate
            if self.ended:
                self.done_ns = now_ns - round(short_s * 1e9)
            elif not self.paused and short_s > 0.0:
                fresh = self.played < self.written
                self.dry += fresh
                self.dry_s += short_s
                self.longest_dry_s = max(self.longest_dry_s, short_s)
        self.played, self.at_ns = min(reached, float(self.written)), now_ns

    def position(self, now_ns: int | None = None) -> float:
        """Return how many samples have been played by now."""
        now_ns = time.monotonic_ns() if now_ns is None else now_ns
        with self._lock:
            self._advance(now_ns)
            if not self.first_ns:
                return 0.0
            if self.done_ns and not self.cleared:
                return float(self.written)
            if self.cleared or self.lost or not self.device:
                return min(self.played, float(self.written))
            since_s = min(max(now_ns - self.at_ns, 0) * 1e-9, EXTRAPOLATE_S)
            return min(self.played + since_s * self.rate, float(self.written))

    def slack_s(self, now_ns: int | None = None) -> float:
        """Return for how many seconds what was handed over will last."""
        return max(0.0, (self.written - self.position(now_ns)) / self.rate)
