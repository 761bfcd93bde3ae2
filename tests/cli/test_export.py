# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from omni_ros.cli import export, main

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"
CHECKPOINT = ORACLES / "smolvla_given" / "checkpoint"


@pytest.fixture
def torch():
    for module in ("safetensors", "executorch.exir", "torchao"):
        pytest.importorskip(module)
    return pytest.importorskip("torch")


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command with an --out; return status, output and errors."""

    def run(*words, checkpoint=CHECKPOINT):
        words = ["export", str(checkpoint), "--out", str(tmp_path / "b.bundle"), *map(str, words)]
        status = main.main(words)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def exporter(torch, monkeypatch):
    """Replace the exporter by a function of its keyword arguments."""
    from omni_ros.models.export import bundle

    def replace(function):
        monkeypatch.setattr(bundle, "export_checkpoint", function)

    return replace


def test_joints_are_asked_for_before_anything_is_imported(run, tmp_path):
    status, _, error = run()
    assert status == 2
    assert "joints are not given" in error
    assert "raw" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_that_is_there_is_kept(run, tmp_path):
    (tmp_path / "b.bundle").mkdir()
    status, _, error = run("--joints", "raw")
    assert status == 2
    assert "is there already; pass --force" in error


def test_threads_must_make_sense(run):
    status, _, error = run("--joints", "raw", "--threads", 0)
    assert status == 2
    assert "--threads 0: expected 1 to 1024" in error


@pytest.mark.parametrize(("given", "words"), [
    ("3", "--cameras 3: the checkpoint has top, wrist; expected 1 to 2"),
    ("0", "--cameras 0: the checkpoint has"),
    ("wrist,left", "--cameras wrist,left: the checkpoint has top, wrist"),
    ("wrist,", "'wrist,': expected a number, or names"),
])  # fmt: skip
def test_cameras_that_the_checkpoint_lacks_are_refused_with_those_it_has(torch, run, given, words):
    status, _, error = run("--joints", "raw", "--cameras", given)
    assert status == 2
    assert words in error
    assert error.count("\n") == 1


def test_a_folder_that_is_no_checkpoint_is_one_clear_line(torch, run, tmp_path):
    status, _, error = run("--joints", "raw", checkpoint=tmp_path)
    assert status == 2
    assert f"{tmp_path / 'config.json'} does not exist" in error
    assert error.count("\n") == 1


def test_advice_is_spelled_as_options(torch, run, tmp_path):
    import shutil

    checkpoint = shutil.copytree(CHECKPOINT, tmp_path / "alone" / "checkpoint")
    status, _, error = run("--joints", "raw", checkpoint=checkpoint)
    assert status == 2
    assert "pass --backbone DIR" in error


def test_options_reach_the_exporter_and_the_table_is_printed(exporter, run, exported, tmp_path):
    from omni_ros.bundles import read_manifest

    manifest = read_manifest(exported("smolvla_given", "fp32"))
    given = {}

    def record(checkpoint, out, *, progress, **options):
        given.update(options, checkpoint=checkpoint, out=out)
        progress("vision_encoder: lowering (int8) ...")
        return manifest

    exporter(record)
    status, out, error = run(
        "--joints", "a:rad,b:deg", "--recipe", "int8", "--stats", "identity", "--name", "pick",
        "--lerobot-compat", "transformers-4.55", "--dataset", "so100", "--allow-portable",
        "--backbone", tmp_path, "--cameras", "wrist, top",
    )  # fmt: skip
    assert status == 0
    assert [joint.name for joint in given["joints"].action] == ["a", "b"]
    assert (given["recipe"], given["statistics"], given["name"]) == ("int8", "identity", "pick")
    assert (given["lerobot_compat"], given["dataset"]) == ("transformers-4.55", "so100")
    assert (given["backbone"], given["allow_portable"]) == (tmp_path, True)
    assert given["cameras"] == ["wrist", "top"]
    assert "observation.images.top" in out
    assert "s] vision_encoder: lowering" in error
    assert "joints are raw" in error


def test_a_network_that_does_not_lower_is_a_failure_and_not_wrong_usage(exporter, run):
    from omni_ros.models.export.lower import LoweringError

    def fail(*arguments, **options):
        raise LoweringError("action_head (fp32) became 2 x XnnpackBackend with aten::cumsum.out")

    exporter(fail)
    status, _, error = run("--joints", "raw")
    assert status == 1
    assert "error: action_head (fp32) became 2 x XnnpackBackend" in error
    assert "nothing was written" in error


def test_a_full_disk_is_said_with_what_it_takes(exporter, run):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    exporter(fail)
    status, _, error = run("--joints", "raw")
    assert status == 2
    assert "No space left on device; nothing was written" in error
    assert "--recipe int8" in error


@pytest.mark.parametrize(("number", "wanted"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_it_and_says_that_nothing_was_left(exporter, run, number, wanted):
    def wait(*arguments, **options):
        os.kill(os.getpid(), number)
        time.sleep(10)

    exporter(wait)
    before = signal.getsignal(signal.SIGTERM)
    status, _, error = run("--joints", "raw")
    assert status == wanted
    assert "interrupted; nothing was written" in error
    assert signal.getsignal(signal.SIGTERM) == before


def test_recipes_are_those_of_the_exporter(torch):
    from omni_ros.models.export.lower import RECIPES

    assert export.RECIPES == RECIPES
