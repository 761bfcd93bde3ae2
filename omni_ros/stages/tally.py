# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a stage counts and times. Written by the thread that works, read by the one that reports."""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

#: Observations that percentiles and rates are taken over.
WINDOW = 128
#: Stages that are timed; names come from messages too, and must not fill the memory.
MOST_TIMED = 24


class State(IntEnum):
    """As in PolicyStatus."""

    INACTIVE = 0
    WAITING = 1
    RUNNING = 2
    ERROR = 3


@dataclass
class Numbers:
    """A consistent copy of what was counted. Durations in seconds."""

    state: State = State.INACTIVE
    text: str = ""
    observation_seq: int = 0
    observation_stamp_ns: int = 0
    started: int = 0
    handed_on: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    timings: dict[str, tuple[float, float]] = field(default_factory=dict)
    latency: tuple[float, float] = (float("nan"), float("nan"))
    rate_hz: float = 0.0


class Tally:
    """Counters since activation, and timings over the last observations."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything, as at an activation."""
        with self._lock:
            self._state, self._text = State.INACTIVE, ""
            self._seq = self._stamp_ns = self._started = self._handed_on = 0
            self._dropped: Counter[str] = Counter()
            self._timings: dict[str, deque[float]] = {}
            self._latencies: deque[float] = deque(maxlen=WINDOW)
            self._moments: deque[int] = deque(maxlen=WINDOW)

    def set_state(self, state: State, text: str) -> None:
        """Say what the stage does now."""
        with self._lock:
            self._state, self._text = state, text

    def started(self) -> None:
        """Count an observation that was taken up."""
        with self._lock:
            self._started += 1

    def handed_on(self, seq: int, stamp_ns: int, mono_ns: int, timings: dict[str, float],
                  latency_s: float | None = None) -> None:
        """Count one that went through.

        :param mono_ns: monotonic clock. :param timings: seconds by stage, of this observation.
        :param latency_s: from its stamp to now, where this is the last stage.
        """
        with self._lock:
            self._handed_on += 1
            self._seq, self._stamp_ns = seq, stamp_ns
            self._moments.append(mono_ns)
            for name, seconds in timings.items():
                if name not in self._timings and len(self._timings) >= MOST_TIMED:
                    continue
                self._timings.setdefault(name, deque(maxlen=WINDOW)).append(seconds)
            if latency_s is not None:
                self._latencies.append(latency_s)

    def did_again(self, mono_ns: int, timings: dict[str, float]) -> None:
        """Count a result for which no observation went through: see `held`."""
        with self._lock:
            self._moments.append(mono_ns)
            for name, seconds in timings.items():
                if name in self._timings:
                    self._timings[name].append(seconds)

    def dropped(self, reason: str, seq: int = 0, stamp_ns: int = 0, number: int = 1) -> None:
        """Count one that did not."""
        with self._lock:
            self._dropped[reason] += number
            if seq:
                self._seq, self._stamp_ns = seq, stamp_ns

    def numbers(self) -> Numbers:
        """Return a copy of it all."""
        with self._lock:
            state = (self._state, self._text, self._seq, self._stamp_ns, self._started,
                     self._handed_on, dict(self._dropped))
            timings = {name: list(values) for name, values in self._timings.items()}
            latencies, moments = list(self._latencies), list(self._moments)
        rate = 0.0
        if len(moments) > 1 and moments[-1] > moments[0]:
            rate = (len(moments) - 1) * 1e9 / (moments[-1] - moments[0])
        return Numbers(*state, {name: percentiles(v) for name, v in timings.items()},
                       percentiles(latencies), rate)


def percentiles(values: list[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile, NaN without values."""
    if not values:
        return float("nan"), float("nan")
    low, high = np.percentile(values, (50, 99))
    return float(low), float(high)
