# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench player`: what it refuses and how it reports; no graph is started here."""

from __future__ import annotations

import argparse
import math
import os
import sys
from types import SimpleNamespace

import pytest
from omni_ros.cli import UsageError, bench_player
from omni_ros.telemetry.provenance import provenance


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench_player.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    "words",
    [
        ("--seconds", "0"),
        ("--seconds", "nan"),
        ("--rate", "-5"),
        ("--rate", "inf"),
        ("--busy", "0"),
        ("--domain", "300"),
        ("--json", "/no/such/folder/file.json"),
    ],
)
def test_an_option_out_of_range_is_refused_with_what_was_given(words):
    with pytest.raises(UsageError, match=words[0]):
        bench_player._check(arguments(*words))


def test_the_defaults_are_accepted():
    bench_player._check(arguments())


def row(name: str, **changes):
    base = {"ticks": 3000, "missed": 1, "p50": 1e-4, "p99": 5e-4, "max": 2e-3}
    values = {
        "condition": name,
        "busy_processes": 0,
        "seconds": 60.0,
        "ticks": 3000,
        "missed": 2,
        "p50": 0.00012,
        "p99": 0.0015,
        "max": 0.00456,
        "stops": 0,
        "commands": 3000,
        "cpu_percent": 7.4,
        "load_average": 1.25,
        "baseline": base,
        "realtime": [],
    }
    return {**values, **changes}


def document(*rows):
    return {
        "rate_hz": 50.0,
        "window_s": 60.0,
        "baseline": "bare process",
        "conditions": list(rows),
        "provenance": provenance(),
    }


def test_the_report_has_milliseconds_the_ratio_to_the_baseline_and_the_provenance():
    text = bench_player.render(document(row("idle"), row("2 busy processes")))
    line = next(line for line in text.splitlines() if line.startswith("idle  "))
    assert line.split() == "idle 3000 0.12 1.50 4.56 2 7 % 0.50 3.0".split()
    assert "Python" in text and "omni_ros" in text


def test_the_report_fits_80_columns():
    text = bench_player.render(document(row("idle"), row("2 busy processes")), 80)
    assert max(map(len, text.splitlines())) <= 80


def test_what_could_not_be_measured_is_a_question_mark():
    broken = row("idle", cpu_percent=None, baseline={**row("")["baseline"], "p99": 0.0})
    line = bench_player.render(document(broken)).splitlines()[4]
    assert line.count("?") == 2


def test_stops_during_a_window_are_told():
    assert "idle: the player stopped 3 times" in bench_player.render(document(row("idle", stops=3)))


def test_what_was_asked_of_the_operating_system_is_told():
    text = bench_player.render(document(row("idle", realtime=["SCHED_FIFO priority 50: granted"])))
    assert "real time: SCHED_FIFO priority 50: granted" in text


def test_a_graph_that_ends_by_itself_is_an_error_with_what_it_printed(tmp_path):
    command = [sys.executable, "-c", "print('no such robot'); raise SystemExit(3)"]
    with pytest.raises(RuntimeError, match="status 3.*no such robot"):
        with bench_player.launched(command, tmp_path / "log") as (process, check_alive):
            process.wait()
            check_alive()


def test_the_graph_shares_the_session_of_its_baseline_but_not_its_interrupts(tmp_path):
    # The kernel shares the processor out between sessions first.
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with bench_player.launched(command, tmp_path / "log") as (process, _):
        assert os.getsid(process.pid) == os.getsid(0)
        assert os.getpgid(process.pid) == process.pid


class Probe:
    """Counts up at 100 Hz as a player would."""

    def __init__(self):
        self.ticks, self.resets = 0, 0

    def spin(self, seconds):
        self.ticks += round(seconds * 100)

    def reset_lateness(self):
        self.resets += 1
        return self.fresh_status()

    def fresh_status(self):
        return SimpleNamespace(
            ticks=self.ticks, ticks_missed=0, stops=0, commands=self.ticks,
            lateness_p50=0.1, lateness_p99=0.2, lateness_max=0.3, realtime=["asked: granted"],
        )  # fmt: skip


def test_a_window_counts_only_its_own_ticks_and_has_a_baseline(monkeypatch):
    monkeypatch.setattr(bench_player, "SETTLE_S", 0.5)
    probe = Probe()
    result = bench_player.measure(probe, os.getpid(), "idle", 0, 100.0, 1.0)
    assert probe.resets == 1 and result["ticks"] == 100
    assert result["p99"] == 0.2 and result["cpu_percent"] is None
    assert result["baseline"]["ticks"] + result["baseline"]["missed"] == 100
    assert not math.isnan(result["baseline"]["p99"])
