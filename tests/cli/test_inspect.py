# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from omni_ros.bundles import BundleError, file_entry, read_manifest, write_manifest
from omni_ros.bundles.layout import JointName
from omni_ros.cli import inspect, main
from omni_ros.requirements import MissingDependency

pytestmark = pytest.mark.usefixtures("results")

PROGRAMS = ("vision_encoder", "fusion_backbone", "action_head")


@pytest.fixture(scope="module")
def bundle(exported):
    return exported("smolvla_given", "fp32")


@pytest.fixture
def copy(bundle, tmp_path):
    """A bundle to damage."""
    return shutil.copytree(bundle, tmp_path / "b.bundle")


def test_every_line_fits_eighty_columns(bundle, capsys):
    assert main.main(["inspect", str(bundle)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_the_table_has_programs_cameras_memory_and_origin(bundle, capsys):
    main.main(["inspect", str(bundle)])
    out = capsys.readouterr().out
    manifest = read_manifest(bundle)
    for word in (*PROGRAMS, "observation.images.wrist", "fp32", "XnnpackBackend",
                 f"{manifest.memory.total / 1e6:.1f} MB", manifest.provenance.tools.torch,
                 manifest.provenance.checkpoint_sha256[:16]):
        assert word in out
    assert "no player takes" in out


def test_joints_are_listed_with_their_units(bundle):
    manifest = read_manifest(bundle)
    names = tuple(JointName(f"joint_{i}", "deg") for i in range(manifest.dimensions.action))
    text = inspect.summary(dataclasses.replace(manifest, joints=names, state_joints=names))
    assert "joint_3" in text
    assert "deg  state and action" in text


def test_names_of_actions_and_state_stand_apart_where_they_differ(bundle):
    manifest = read_manifest(bundle)
    names = (JointName("jaw", "normalised"),)
    text = inspect.summary(dataclasses.replace(manifest, joints=names, state_joints="raw"))
    assert "jaw" in text
    assert "  action" in text


def test_operators_outside_the_delegate_are_named(bundle):
    manifest = read_manifest(bundle)
    head = dataclasses.replace(manifest.programs["action_head"], leftover=("aten::cumsum.out",))
    text = inspect.summary(
        dataclasses.replace(manifest, programs={**manifest.programs, "action_head": head})
    )
    assert "action_head  left over: aten::cumsum.out" in text


def test_json_is_the_manifest(bundle, capsys):
    assert main.main(["inspect", str(bundle), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == 1
    assert set(document["programs"]) == set(PROGRAMS)
    assert "verified" not in document


def test_verifying_runs_every_golden_vector(bundle, capsys):
    assert main.main(["inspect", str(bundle), "--verify", "--json"]) == 0
    verified = json.loads(capsys.readouterr().out)["verified"]
    assert set(verified["differences"]) == set(PROGRAMS)
    assert verified["files"] == len(read_manifest(bundle).files) + 1


@pytest.mark.parametrize("name", ["action_head.pte", "tokenizer.json", "embeddings.npy",
                                  "golden/fusion_backbone.npz"])
def test_a_flipped_bit_is_found_and_its_file_named(copy, capsys, name):
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 4
    (copy / name).write_bytes(content)
    assert main.main(["inspect", str(copy), "--verify"]) == 1
    error = capsys.readouterr().err
    assert f"{copy / name}: has SHA-256" in error
    assert error.count("\n") == 1


def test_a_program_that_answers_otherwise_is_found_even_if_its_hashes_are_right(copy, capsys):
    path = copy / "golden" / "action_head.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["outputs.velocity"] = arrays["outputs.velocity"] + np.float32(0.5)
    np.savez_compressed(path, **arrays)
    manifest = read_manifest(copy)
    files = {**manifest.files, "golden/action_head.npz": file_entry(path)}
    write_manifest(copy, dataclasses.replace(manifest, files=files))
    assert main.main(["inspect", str(copy), "--verify"]) == 1
    assert "action_head.pte: output velocity differs" in capsys.readouterr().err


def test_a_missing_file_is_named(copy, capsys):
    (copy / "statistics.json").unlink()
    assert main.main(["inspect", str(copy), "--verify"]) == 1
    assert "statistics.json: is missing" in capsys.readouterr().err


def test_an_edited_manifest_is_a_fault_without_verifying(copy, capsys):
    path = copy / "bundle.yaml"
    path.write_text(path.read_text().replace("joints: raw", "joints: big"))
    assert main.main(["inspect", str(copy)]) == 1
    assert "bundle.yaml: has SHA-256" in capsys.readouterr().err


def test_a_fault_is_in_the_json_too(copy, capsys):
    (copy / "bundle.yaml").unlink()
    assert main.main(["inspect", str(copy), "--json"]) == 1
    assert "bundle.yaml" in json.loads(capsys.readouterr().out)["fault"]


def test_without_executorch_hashes_are_checked_and_the_rest_is_said(bundle, capsys, monkeypatch):
    def missing(*arguments, **options):
        raise MissingDependency("executorch is not installed; type: pip install executorch")

    monkeypatch.setattr("omni_ros.bundles.try_programs", missing)
    assert main.main(["inspect", str(bundle), "--verify"]) == 0
    out = capsys.readouterr().out
    assert "files have the right size and SHA-256" in out
    assert "NOT RUN" in out
    assert "pip install executorch" in " ".join(out.split())


def test_a_verification_that_finds_a_fault_raises_it(copy):
    (copy / "tokenizer.json").write_text("{}")
    with pytest.raises(BundleError, match="tokenizer.json: has 2 bytes"):
        inspect.verify(copy, read_manifest(copy))


def test_neither_pytorch_nor_the_exporter_is_imported(bundle):
    code = (
        "import sys; from omni_ros.cli import main; "
        f"status = main.main(['inspect', {str(bundle)!r}, '--verify']); "
        "print([m for m in sys.modules if m.partition('.')[0] in ('torch', 'executorch')]); "
        "sys.exit(status)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-P", "-c", code] if sys.version_info >= (3, 11)
                          else [sys.executable, "-c", code],
                          capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
