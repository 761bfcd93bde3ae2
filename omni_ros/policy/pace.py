# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""When to look again, so that the next chunk is there before the last one is used up."""

from __future__ import annotations

from dataclasses import dataclass

from omni_ros.policy.latency import LatencyEstimator, check_latency
from omni_ros.robot import PolicyConfig

#: Above this share of the room that a chunk leaves, a set-up is close to not keeping up.
_TIGHT = 0.8


def chunk_life_ns(config: PolicyConfig, chunk: int) -> int:
    """Return how long after its observation a chunk of that many rows may be played.

    As long as its rows reach, and as late as the latest chunk that keeps up may come: an arm at
    rest starts at the first row, so its chunk's end is later by what the chunk took.
    """
    if config.life_s is not None:
        return round(config.life_s * 1e9)
    return (2 * chunk - min(config.execution_horizon, chunk - 1)) * config.dt_ns


@dataclass(frozen=True)
class Verdict:
    """What measured latencies mean for a set-up. `refused`: chunks come too late, for ever."""

    refused: bool
    text: str


class Pace:
    """One observation at a time: due `execution_horizon` rows after the last, or before its chunk
    would run out. All times but `lost` by the clock of the stamps."""

    def __init__(self, config: PolicyConfig, chunk: int, *, expected_latency_ns: int | None = None
                 ) -> None:
        """
        :param chunk: rows. :param expected_latency_ns: until one is measured.
        :raises ValueError: the horizon does not leave a row of the chunk.
        """
        if not config.execution_horizon < chunk:
            raise ValueError(
                f"policy.execution_horizon is {config.execution_horizon}; the policy's chunks have "
                f"{chunk} rows: write fewer, so that some are left while the next one is computed"
            )
        self.config, self.chunk, self.dt_ns = config, chunk, config.dt_ns
        self.estimator = LatencyEstimator(expected_ns=expected_latency_ns, warm_up=0)
        #: Observations of which no chunk came.
        self.lost_count = 0
        self.reset()

    def reset(self) -> None:
        """Start anew: the next observation is due at once. Measured latencies stay."""
        self._flying: tuple[int, int] | None = None
        self._last_stamp_ns: int | None = None
        self._covered = False

    @property
    def in_flight(self) -> bool:
        """True while a chunk is being computed."""
        return self._flying is not None

    @property
    def next_ns(self) -> int:
        """When the next observation is due; 0: at once."""
        if self._last_stamp_ns is None or not self._covered:
            return 0
        horizon = self._last_stamp_ns + self.config.execution_horizon * self.dt_ns
        end = self._last_stamp_ns + self.chunk * self.dt_ns
        return min(horizon, end - self.estimator.latency_ns())

    def ready(self, now_ns: int) -> bool:
        """True if the next observation should be started."""
        if self._flying is not None:
            return False
        went_back = self._last_stamp_ns is not None and now_ns < self._last_stamp_ns
        return went_back or now_ns >= self.next_ns

    def started(self, stamp_ns: int, now_ns: int) -> None:
        """An observation was begun."""
        self._flying = stamp_ns, now_ns

    def arrived(self, stamp_ns: int, now_ns: int) -> int | None:
        """The chunk of an observation is there; return its latency, None if not the one in flight.

        """
        if self._flying is None or self._flying[0] != stamp_ns:
            return None
        self._flying, self._last_stamp_ns, self._covered = None, stamp_ns, True
        latency_ns = max(0, now_ns - stamp_ns)
        self.estimator.add(latency_ns)
        return latency_ns

    def dropped(self, stamp_ns: int) -> None:
        """No chunk will come of an observation: the next one is due at once."""
        if self._flying is not None and self._flying[0] == stamp_ns:
            self._flying, self._covered = None, False

    def lost(self, now_ns: int) -> bool:
        """True, once, if the chunk in flight has not come within its life: it is forgotten."""
        if self._flying is None:
            return False
        waited_ns = now_ns - self._flying[1]
        if 0 <= waited_ns <= chunk_life_ns(self.config, self.chunk):
            return False
        self._flying, self._covered = None, False
        self.lost_count += 1
        return True

    def verdict(self, latency_p99_ns: int) -> Verdict | None:
        """Judge a high percentile of the latency; None if the set-up keeps up."""
        horizon = self.config.execution_horizon
        try:
            check_latency(latency_p99_ns, chunk=self.chunk, execution_horizon=horizon,
                          dt_ns=self.dt_ns)
        except ValueError as error:
            return Verdict(True, str(error))
        room_ns = (self.chunk - horizon) * self.dt_ns
        if latency_p99_ns <= _TIGHT * room_ns:
            return None
        return Verdict(False, (
            f"a chunk takes {latency_p99_ns / 1e6:.0f} ms, {latency_p99_ns / room_ns:.0%} of the "
            f"{room_ns / 1e6:.0f} ms that the old one lasts then; lower execution_horizon or the "
            "flow steps before a busy moment makes the arm wait"
        ))
