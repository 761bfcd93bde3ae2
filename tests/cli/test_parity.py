# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni parity`: a row a tensor, and a status that says whether all passed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from omni_ros.cli import main

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"
GIVEN = ORACLES / "smolvla_given"


def test_a_good_bundle_passes_with_a_row_a_tensor(exported, capsys, tmp_path):
    bundle, out = exported("smolvla_given", "fp32"), tmp_path / "rows.json"
    status = main.main(["parity", str(bundle), "--oracle", str(GIVEN), "--json", str(out)])
    text = capsys.readouterr().out
    assert status == 0
    for name in ("pixels top", "pixels wrist", "tokens", "state, normalised",
                 "image embeddings wrist", "prefix keys, self-attention",
                 "prefix values, cross-attention, projected", "v_t step 9", "actions, normalised",
                 "actions, robot units", "RTC LINEAR, actions", "RTC EXP, actions",
                 "RTC ONES, actions", "RTC ZEROS, actions", "effect of top", "effect of wrist",
                 "effect of the state", "effect of the text", "effect of the noise"):
        assert name in text
    assert "FAIL" not in text
    document = json.loads(out.read_text())
    assert document["passed"] is True and document["provenance"]["cpus_online"]
    assert {"name", "difference", "tolerance", "passed"} <= set(document["rows"][0])


def test_one_row_that_fails_is_named_and_the_status_is_1(exported, capsys, tmp_path):
    changed = Path(shutil.copytree(GIVEN, tmp_path / "changed"))
    path = changed / "tensors" / "steps.npz"
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays["v_t"][7, 0, 3, 2] += 1e-3
    np.savez(path, **arrays)
    status = main.main(
        ["parity", str(exported("smolvla_given", "fp32")), "--oracle", str(changed)]
    )
    text = capsys.readouterr().out
    assert status == 1
    assert "1 of 41 FAIL: v_t step 7" in text


def test_an_input_that_moves_too_little_fails(exported, capsys, tmp_path):
    changed = Path(shutil.copytree(GIVEN, tmp_path / "changed"))
    arch = json.loads((changed / "arch.json").read_text())
    arch["sensitivity_max_abs"]["state"] *= 5
    (changed / "arch.json").write_text(json.dumps(arch))
    status = main.main(
        ["parity", str(exported("smolvla_given", "fp32")), "--oracle", str(changed)]
    )
    assert status == 1
    assert "FAIL: effect of the state" in capsys.readouterr().out


def test_another_checkpoints_set_is_refused(exported, capsys):
    status = main.main(["parity", str(exported("smolvla_given", "fp32")),
                        "--oracle", str(ORACLES / "smolvla_given_b")])  # fmt: skip
    assert status == 2
    assert "is not of the checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["x.bundle", "--recipe", "fp32"]])
def test_exactly_one_of_bundle_and_recipe_is_asked_for(words, capsys):
    assert main.main(["parity", *words, "--oracle", str(GIVEN)]) == 2
    assert "of BUNDLE and --recipe given" in capsys.readouterr().err


def test_a_folder_that_is_no_set_is_refused(capsys, tmp_path):
    assert main.main(["parity", "--recipe", "fp32", "--oracle", str(tmp_path)]) == 2
    assert "inputs.npz is not there" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sets_own_checkpoint_is_exported_first(capsys):
    pytest.importorskip("executorch.exir")
    assert main.main(["parity", "--recipe", "fp32", "--oracle", str(GIVEN)]) == 0
    assert "all 41 pass" in capsys.readouterr().out


def test_a_voice_is_compared_with_what_onnxruntime_made_of_it(capsys, tmp_path):
    from omni_ros.bundles import BundleError
    from omni_ros.bundles.named import bundle_folder

    try:
        bundle_folder("voice_joe")
    except BundleError:
        pytest.skip("the voice was not exported; make setup does it")
    out = tmp_path / "rows.json"
    oracle = ORACLES / "piper_joe"
    assert main.main(["parity", "voice_joe", "--oracle", str(oracle), "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "against onnxruntime" in text and "FAIL" not in text
    names = {row["name"] for row in json.loads(out.read_text())["rows"]}
    for case in ("plain", "noisy", "slow"):
        for tensor in ("mean", "log_spread", "durations", "flow", "samples"):
            assert f"{case}: {tensor}" in names


def test_a_reference_set_of_a_voice_has_no_checkpoint_to_export(capsys):
    oracle = ORACLES / "piper_joe"
    assert main.main(["parity", "--recipe", "fp32", "--oracle", str(oracle)]) == 2
    assert "the set is a voice's; expected BUNDLE" in capsys.readouterr().err
