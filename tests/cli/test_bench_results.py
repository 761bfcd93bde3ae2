# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a bench leaves for `omni inspect`: of which bundle, which machine, and when."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from omni_ros.bundles import manifest_hash, read_manifest, write_manifest
from omni_ros.cli import bench_results, inspect, main

pytestmark = pytest.mark.usefixtures("results")

STAGES = {"preprocess": 0.01, "vision_encoder": 0.05, "fusion_backbone": 0.02,
          "action_head": 0.1, "postprocess": 0.02}


@pytest.fixture
def bundle(exported, tmp_path):
    """A bundle's manifest alone: nothing else of it is looked at."""
    (tmp_path / "b.bundle").mkdir()
    shutil.copy(exported("smolvla_given", "fp32") / "bundle.yaml", tmp_path / "b.bundle")
    return tmp_path / "b.bundle"


def keep(bundle: Path, **changed) -> Path:
    side = {"p50": 0.2, "p99": 0.3, "max": 0.4, "stages": STAGES, "seconds": [0.2]}
    return bench_results.keep(bundle, {
        "chunks": 20, "threads": 2, "cameras": 1, "cameras_of_bundle": 2, "sides": {"bundle": side},
        "provenance": {"time": "2026-11-29T19:00:00+00:00", "cpu": "A CPU"}, **changed,
    })


def shown(bundle: Path) -> str:
    return " ".join(inspect.bench(bundle).split())


def test_inspect_shows_the_time_of_each_stage_with_threads_cameras_and_date(bundle):
    keep(bundle)
    text = shown(bundle)
    assert "p50 200.0 ms a chunk, p99 300.0 ms, of 20 chunks" in text
    assert "2 threads and 1 of 2 cameras, 2026-11-29T19:00:00+00:00" in text
    assert "vision_encoder 50.0 25 %" in text
    assert "on this kind of machine: A CPU" in text


def test_a_result_of_another_machine_is_marked(bundle, monkeypatch):
    keep(bundle)
    monkeypatch.setattr(bench_results, "this_machine", lambda: "aarch64 Cortex-A76")
    assert "NOT HERE measured on another machine" in shown(bundle)


def test_a_bundle_that_was_never_measured_says_how_to(bundle, capsys):
    assert main.main(["inspect", str(bundle)]) == 0
    assert "omni bench policy BUNDLE" in capsys.readouterr().out


def test_results_follow_the_content_of_a_bundle_and_not_its_place(bundle, tmp_path):
    keep(bundle)
    moved = bundle.rename(tmp_path / "elsewhere")
    assert bench_results.kept(moved)["chunks"] == 20
    with_other_name = read_manifest(moved)
    object.__setattr__(with_other_name, "name", "other")
    write_manifest(moved, with_other_name)
    assert bench_results.kept(moved) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"p50": 1', '{"p50": "x"}'])
def test_a_damaged_result_counts_as_none(bundle, content):
    keep(bundle).write_text(content)
    assert bench_results.kept(bundle) is None


def test_a_result_is_named_after_the_manifests_hash(bundle):
    last = (bundle / "bundle.yaml").read_text().splitlines()[-1]
    assert last == f"manifest_sha256: {manifest_hash(bundle)}"
    assert keep(bundle).stem == manifest_hash(bundle)


def test_json_has_the_result_too(bundle, capsys):
    keep(bundle)
    assert main.main(["inspect", str(bundle), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bench"]["stages"] == STAGES
