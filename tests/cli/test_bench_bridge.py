# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench bridge`: what it refuses and how it reports; no graph is started here."""

from __future__ import annotations

import argparse

import pytest
from omni_ros.cli import UsageError, bench_bridge
from omni_ros.cli.bridge_remote import CONDITIONS
from omni_ros.telemetry.provenance import provenance


@pytest.mark.parametrize("words", [
    ("--seconds", "0"), ("--seconds", "nan"), ("--rounds", "0"),
    ("--json", "/no/such/folder/file.json")])
def test_an_option_out_of_range_is_refused_with_what_was_given(words):
    parser = argparse.ArgumentParser()
    bench_bridge.add_arguments(parser)
    with pytest.raises(UsageError, match=words[0]):
        bench_bridge.run(parser.parse_args(words))


def window(number: int, name: str, p99: float) -> dict:
    return {"round": number, "condition": name, "p50": 1e-4, "p99": p99, "max": 2.0 * p99,
            "missed": 1, "stops": 0, "load_average": 1.0, "reason": "slow"}


@pytest.fixture
def document():
    windows = [window(number, name, (1e-3 if name == bench_bridge.ALONE else 1.5e-3) * number)
               for number in (1, 2) for name in (bench_bridge.ALONE, *CONDITIONS)]
    return {"rate_hz": 50.0, "window_s": 10.0, "rounds": 2, "baseline": "the graph alone",
            "conditions": dict(CONDITIONS), "windows": windows, "provenance": provenance()}


def test_a_ratio_is_of_two_windows_of_one_round(document):
    assert bench_bridge.ratios(document, "slow") == pytest.approx([1.5, 1.5])


def test_the_table_has_a_line_for_each_condition_with_its_spread_and_link(document):
    text = bench_bridge.render(document, 200)
    for name in CONDITIONS:
        line = next(line for line in text.splitlines() if line.startswith(name))
        assert "1.50 (1.50 to 1.50)" in line and line.rstrip().endswith("slow")


def test_a_window_without_lateness_gives_no_ratio(document):
    for row in document["windows"]:
        row["p99"] = 0.0
    assert bench_bridge.ratios(document, "up") == []
    assert "?" in bench_bridge.render(document)
