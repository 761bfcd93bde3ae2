# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The bare process that shows what the machine itself gives."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from omni_ros.cli import baseline
from omni_ros.cli.children import child_environment


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.0, 1.0)]
)
def test_percentiles_are_values_that_occurred(share, expected):
    assert baseline.percentile([float(n) for n in range(100, 0, -1)], share) == expected


def test_the_percentile_of_nothing_is_nan():
    assert math.isnan(baseline.percentile([], 0.99))


def test_every_deadline_is_either_met_or_counted_as_missed(monkeypatch):
    clock = Clock(stall_at=5, stall_ns=65_000_000)
    monkeypatch.setattr(baseline, "time", clock)
    figures = baseline.measure(50.0, 1.0)
    assert figures["ticks"] + figures["missed"] == 50
    assert figures["missed"] == 3
    assert figures["max"] == pytest.approx(0.065, abs=0.001)
    assert figures["p50"] == pytest.approx(0.0, abs=0.001)


def test_the_schedule_does_not_drift(monkeypatch):
    clock = Clock(stall_at=-1, stall_ns=0, overhead_ns=300_000)
    monkeypatch.setattr(baseline, "time", clock)
    figures = baseline.measure(50.0, 2.0)
    assert figures["ticks"] == 100 and figures["max"] < 0.002
    assert clock.now == pytest.approx(2_000_000_000, abs=3_000_000)


def test_as_a_process_it_needs_nothing_but_python():
    code = (
        "import runpy, sys; sys.argv = ['baseline', '100', '0.1'];"
        "runpy.run_module('omni_ros.cli.baseline', run_name='__main__');"
        "sys.exit('numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=child_environment(), timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert b'"p99"' in done.stdout


class Clock:
    """A clock in which every reading costs a little and one sleep overruns."""

    def __init__(self, stall_at: int, stall_ns: int, overhead_ns: int = 1_000) -> None:
        self.now, self._sleeps = 0, 0
        self._stall_at, self._stall_ns, self._overhead = stall_at, stall_ns, overhead_ns

    def monotonic_ns(self) -> int:
        self.now += self._overhead
        return self.now

    def sleep(self, seconds: float) -> None:
        self._sleeps += 1
        self.now += round(seconds * 1e9)
        if self._sleeps == self._stall_at:
            self.now += self._stall_ns
