# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The graph bench's arithmetic and words; tests/graph runs the graph itself."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from omni_ros.bundles.layout import JointName
from omni_ros.cli import UsageError, bench_graph
from omni_ros.cli.graph_robot import robot_for
from omni_ros.cli.graph_watch import ChunkCost, Held, holds, rings
from omni_ros.cli.main import main
from omni_ros.robot import load_robot


def chunk(graph: float, programs: float) -> ChunkCost:
    stages = {"arrival": graph, "vision_encoder": programs / 2, "action_head": programs / 2}
    return ChunkCost(stages, graph + programs, graph + programs + 0.001)


def test_the_graph_costs_what_is_not_a_program():
    assert chunk(0.003, 0.020).graph == pytest.approx(0.003)


def test_what_comes_after_the_pictures_is_told_apart():
    stages = {"arrival": 0.010, "hand_off": 0.002, "action_head": 0.020}
    assert ChunkCost(stages, 0.032, 0.033).own == pytest.approx(0.002)


def test_figures_are_milliseconds_over_all_chunks():
    found = bench_graph.cost_figures([chunk(0.001, 0.02)] * 99 + [chunk(0.101, 0.02)], 10.0)
    assert found["chunks_per_s"] == pytest.approx(10.0)
    assert found["graph_ms"]["p50"] == pytest.approx(1.0)
    assert found["graph_ms"]["max"] == pytest.approx(101.0)


def test_a_window_without_chunks_is_an_error():
    with pytest.raises(RuntimeError, match="no chunk"):
        bench_graph.cost_figures([], 10.0)


def manifest(*joints: JointName, raw: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        name="made_up", joints="raw" if raw else joints,
        cameras=[SimpleNamespace(name=name) for name in ("left", "right", "top")])


def test_the_robot_has_the_bundles_joints_units_and_cameras(tmp_path):
    units = ("rad", "deg", "m", "normalised")
    path = robot_for(
        manifest(*(JointName(f"j{i}", unit) for i, unit in enumerate(units))), tmp_path, horizon=1)
    robot = load_robot(path)
    assert list(robot.joint_names) == ["j0", "j1", "j2", "j3"]
    assert tuple(robot.policy_units) == units
    assert set(robot.cameras) == {"left", "right", "top"}


def test_a_bundle_without_joint_names_is_refused(tmp_path):
    with pytest.raises(UsageError, match="--joints"):
        robot_for(manifest(raw=True), tmp_path, horizon=1)


def test_what_this_process_holds_is_read():
    held = holds(os.getpid())
    assert held.resident_kb > 1000 and held.threads >= 1 and held.files >= 3
    assert held + held == Held(2 * held.resident_kb, 2 * held.files, 2 * held.threads)


def test_a_process_that_has_gone_holds_nothing():
    assert holds(2**22 - 3) is None


def test_only_rings_of_the_given_processes_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("omni_ros.cli.graph_watch.SHARED_MEMORY", tmp_path)
    for name in ("omni_ros.7.1.aa.prefix", "omni_ros.77.1.aa.prefix", "other.7.1"):
        (tmp_path / name).touch()
    assert [path.name for path in rings([7])] == ["omni_ros.7.1.aa.prefix"]


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--size", "640"], "WIDTHxHEIGHT"), (["--rate", "0"], "pictures a second"),
     (["--soak", "1", "--composition", "single"], "minutes"), (["--soak", "5"], "--composition"),
     (["--seconds", "0"], "1 to 3600")],
)
def test_options_out_of_range_are_refused(options, words, capsys):
    assert main(["bench", "graph", "some_bundle", *options]) != 0
    assert words in capsys.readouterr().err
