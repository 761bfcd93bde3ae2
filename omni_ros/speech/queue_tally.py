# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What speech counts and times. Written by the thread that speaks, read by the one that reports."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

#: Utterances that figures are taken over, and chunks that stages are timed over.
WINDOW = 128
#: Stages that are timed.
MOST_TIMED = 24


@dataclass
class Figures:
    """A consistent copy. Seconds; NaN without values."""

    goals: int = 0
    spoken: int = 0
    aborted: int = 0
    refused: int = 0
    underruns: int = 0
    text_waits: int = 0
    longest_gap_s: float = 0.0
    first_audio: tuple[float, float] = (math.nan, math.nan)
    real_time_factor: float = math.nan
    slack_min_s: float = math.nan
    timings: dict[str, tuple[float, float]] = field(default_factory=dict)


class SpeechTally:
    """Counters since activation, and figures over the last utterances."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything, as at an activation."""
        with self._lock:
            self._counts = Figures()
            self._first: deque[float] = deque(maxlen=WINDOW)
            self._work: deque[tuple[float, float]] = deque(maxlen=WINDOW)
            self._slack: deque[float] = deque(maxlen=WINDOW)
            self._timings: dict[str, deque[float]] = {}

    def count(self, name: str) -> None:
        """Count a goal: goals, spoken, aborted or refused."""
        with self._lock:
            setattr(self._counts, name, getattr(self._counts, name) + 1)

    def chunk(self, timings: Mapping[str, float]) -> None:
        """Take the seconds that each stage took for a chunk."""
        with self._lock:
            for name, seconds in timings.items():
                if name in self._timings or len(self._timings) < MOST_TIMED:
                    self._timings.setdefault(name, deque(maxlen=WINDOW)).append(seconds)

    def utterance(self, *, first_s: float | None, work_s: float, length_s: float,
                  slack_s: float | None, underruns: int, longest_gap_s: float,
                  text_waits: int) -> None:
        """Take the figures of an utterance that was made to its end.

        :param first_s: from its turn to the first sample out; None: nobody heard it.
        :param slack_s: least that was left to play when more came; None: it came in one piece.
        """
        with self._lock:
            counts = self._counts
            counts.underruns += underruns
            counts.text_waits += text_waits
            counts.longest_gap_s = max(counts.longest_gap_s, longest_gap_s)
            if first_s is not None:
                self._first.append(first_s)
            if length_s > 0.0:
                self._work.append((work_s, length_s))
            if slack_s is not None:
                self._slack.append(slack_s)

    def figures(self) -> Figures:
        """Return a copy of it all."""
        with self._lock:
            counts = Figures(**vars(self._counts))
            counts.first_audio = percentiles(self._first)
            work, length = (sum(values) for values in zip(*self._work)) if self._work else (0, 0)
            counts.real_time_factor = work / length if length else math.nan
            counts.slack_min_s = min(self._slack, default=math.nan)
            counts.timings = {name: percentiles(v) for name, v in self._timings.items()}
        return counts


def percentiles(values) -> tuple[float, float]:
    """Return the median and the 99th percentile, NaN without values."""
    if not values:
        return math.nan, math.nan
    low, high = np.percentile(list(values), (50, 99))
    return float(low), float(high)
