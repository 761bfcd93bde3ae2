# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench policy` and `omni bench memory`: all figures are there and say what they are of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omni_ros.cli import main
from omni_ros.cli.policy_work import prefix_length, smolvla_work

pytestmark = pytest.mark.usefixtures("results")

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"


def test_a_bench_beside_pytorch_has_both_sides_ratio_stages_and_provenance(
    exported, tmp_path, capsys
):
    out = tmp_path / "figures.json"
    status = main.main([
        "bench", "policy", str(exported("smolvla_given", "fp32")), "--chunks", "3",
        "--warm-up", "1", "--threads", "1", "--cameras", "1", "--json", str(out),
        "--checkpoint", str(ORACLES / "smolvla_given" / "checkpoint"),
    ])  # fmt: skip
    text = capsys.readouterr().out
    assert status == 0
    assert "1 of 2 cameras" in text and "eager / bundle, round by round" in text
    document = json.loads(out.read_text())
    assert set(document["sides"]) == {"bundle", "eager"}
    assert len(document["sides"]["eager"]["seconds"]) == 3
    assert document["ratio"]["p10"] <= document["ratio"]["p50"] <= document["ratio"]["p90"]
    assert [row["program"] for row in document["stages"]] == [
        "vision_encoder", "fusion_backbone", "action_head",
    ]
    for row in document["stages"]:
        assert row["seconds"] > 0 and row["share_of_peak"] > 0 and row["baseline_seconds"] > 0
    assert document["machine"]["peak_gflops"] == max(document["machine"]["gflops"].values())
    assert document["provenance"]["cpu"]


def test_the_latest_result_is_kept_for_inspect_and_the_bundle_stays_whole(
    exported, results, capsys
):
    bundle = exported("smolvla_given", "fp32")
    for chunks in ("1", "2"):
        main.main(["bench", "policy", str(bundle), "--chunks", chunks, "--threads", "1"])
    assert len(list(results.iterdir())) == 1
    capsys.readouterr()
    assert main.main(["inspect", str(bundle), "--verify"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "of 2 chunks with 1 threads and 2 of 2 cameras" in text


def test_a_result_that_cannot_be_kept_is_said_and_no_failure(exported, results, capsys):
    results.write_text("a file where the folder would be")
    bundle = exported("smolvla_given", "fp32")
    assert main.main(["bench", "policy", str(bundle), "--chunks", "1", "--threads", "1"]) == 0
    assert "not kept for omni inspect" in capsys.readouterr().err


def test_without_a_checkpoint_there_is_no_baseline(exported, capsys):
    bundle = exported("smolvla_given", "fp32")
    assert main.main(["bench", "policy", str(bundle), "--chunks", "1", "--threads", "1"]) == 0
    text = capsys.readouterr().out
    assert "eager" not in text and "vision_encoder" in text


def test_a_baseline_that_cannot_be_built_is_an_error_with_its_reason(exported, tmp_path, capsys):
    bundle = exported("smolvla_given", "fp32")
    status = main.main(["bench", "policy", str(bundle), "--checkpoint", str(tmp_path)])
    assert status == 2
    assert "eager side" in capsys.readouterr().err


def test_more_cameras_than_the_bundle_has_are_refused(exported, capsys):
    bundle = exported("smolvla_given", "fp32")
    assert main.main(["bench", "policy", str(bundle), "--cameras", "3"]) == 2
    assert "--cameras 3: expected 1 to 2" in capsys.readouterr().err


def test_memory_over_chunks_is_printed(exported, capsys, tmp_path):
    out = tmp_path / "figures.json"
    main.main(["bench", "memory", str(exported("smolvla_given", "fp32")), "--chunks", "5",
               "--warm-up", "2", "--json", str(out)])  # fmt: skip
    assert "p99 ms" in capsys.readouterr().out
    document = json.loads(out.read_text())
    assert document["largest_call"] <= 64 * 1024
    assert document["max"] >= document["p99"] >= document["p50"] > 0


def test_the_work_of_the_real_size_is_the_known_one():
    pytest.importorskip("torch")
    from omni_ros.models.smolvla.random_checkpoint import REAL

    work = smolvla_work(REAL, 3)
    assert prefix_length(REAL, 3) == 241
    assert work["vision_encoder"] == pytest.approx(214e9, rel=0.02)
    # Two operations a weight and token, and a little for attention.
    assert work["action_head"] == pytest.approx(2 * 98e6 * 50, rel=0.15)
