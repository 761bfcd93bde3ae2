# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni parity` of a Qwen3-TTS: against the reference, and against an unquantised bundle."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.named import bundle_folder
from omni_ros.cli.main import main
from omni_ros.parity import fidelity, piper, qwen3_tts

ORACLE = Path(__file__).resolve().parents[1] / "data" / "oracles" / "qwen3_tts_given"


@pytest.fixture(scope="module")
def bundle() -> Path:
    try:
        return bundle_folder("qwen_tiny")
    except BundleError as error:
        pytest.skip(f"{error}; make setup-qwen exports it")


@pytest.fixture(scope="module")
def rows(bundle) -> dict:
    return {row.name: row for row in qwen3_tts.measure(bundle, ORACLE, 1)["rows"]}


def test_a_set_is_known_by_its_cases(tmp_path):
    assert qwen3_tts.is_reference(ORACLE) and not piper.is_reference(ORACLE)
    assert not qwen3_tts.is_reference(tmp_path)


def test_the_programs_give_the_references_prompts_codes_hidden_states_and_samples(rows):
    assert [name for name, row in rows.items() if not row.passed] == []
    assert {name.partition(" ")[2] for name in rows if "codes" in name} == {
        "stream: codes", "nonstream: codes"}
    assert sum("samples" in name for name in rows) == 10


def test_a_changed_case_does_not_pass_and_says_where(bundle, tmp_path):
    case = dict(np.load(ORACLE / "case1.npz"))
    case["codes_stream"] = case["codes_stream"][:4].copy()
    case["codes_stream"][3, 9] += 1
    case["hidden_stream"] = case["hidden_stream"][:4]
    case["vocoder_codes"] = case["vocoder_codes"][:, :8]
    case["vocoder_pcm"] = case["vocoder_pcm"][:8 * 1920]
    del case["codes_nonstream"]
    np.savez(tmp_path / "case1.npz", **case)
    rows = qwen3_tts.measure(bundle, tmp_path, 1)["rows"]
    assert [row.name for row in rows if not row.passed] == ["case1 stream: codes"]


def test_a_case_that_lacks_something_is_named(bundle, tmp_path):
    np.savez(tmp_path / "case1.npz", text_ids=np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="vocoder_codes, vocoder_pcm"):
        qwen3_tts.measure(bundle, tmp_path, 1)


def test_a_bundle_is_its_own_equal_in_all_that_it_says(bundle):
    document = fidelity.measure(bundle, bundle, frames=3, texts=fidelity.TEXTS[:2])
    own = [row for row in document["rows"] if "llama" not in row["variant"]]
    assert [row["variant"] for row in own] == [
        "talker fp32", "predictor fp32, heads fp32", "both", "vocoder fp32"]
    for row in own:
        assert row["until_differs"] == row["frames"] == (3, 3)
        assert row["equal"] == row["same_past"] == 1.0 and row["snr_db"] is None


def test_a_code_that_differs_is_counted_from_its_frame_on():
    class Vocoder:
        frame_samples = 1

        def start(self):
            pass

        def decode(self, codes):
            return codes[:, 0].astype(np.float32)

    class Voice:
        vocoder = Vocoder()

    plain = [np.arange(8).reshape(4, 2), np.arange(4).reshape(2, 2)]
    other = [plain[0].copy(), plain[1].copy()]
    other[0][2, 1] = 99  # frame 2; its first code, and so the sound, is the same
    sounds = [codes[:, 0].astype(np.float32) for codes in plain]
    row = fidelity.row("x", plain, sounds, iter(other), Voice(), 0.5)
    assert row.until_differs == (2, 2) and row.frames == (4, 2)
    assert row.equal == pytest.approx(11 / 12) and row.snr_db is None
    other[0][3, 0] = 7
    row = fidelity.row("x", plain, sounds, iter(other), Voice(), 0.5)
    assert row.snr_db == pytest.approx(10 * np.log10((0 + 4 + 16 + 36 + 0 + 4) / 1))


def test_a_vocoder_is_given_the_same_codes_and_only_its_samples_differ():
    class Voice:
        class vocoder:
            @staticmethod
            def start():
                pass

            @staticmethod
            def decode(codes):
                return 1.1 * codes[:, 0].astype(np.float32)

    plain = [np.arange(8).reshape(4, 2), np.arange(4).reshape(2, 2)]
    sounds = [codes[:, 0].astype(np.float32) for codes in plain]
    row = fidelity.vocoder_row("vocoder conv8", plain, sounds, Voice())
    assert row.until_differs == row.frames == (4, 2) and row.equal == 1.0
    assert row.snr_db == pytest.approx(20.0, abs=1e-4)


def test_against_needs_two_bundles_of_one_checkpoint(bundle, tmp_path, capsys):
    assert main(["parity", "--against", str(bundle)]) == 2
    assert "--against needs BUNDLE" in capsys.readouterr().err
    assert main(["parity", str(bundle), "--against", str(bundle), "--frames", "0"]) == 2
    assert "--frames 0" in capsys.readouterr().err
    assert main(["parity", str(bundle), "--against", str(tmp_path)]) == 2
    assert "bundle.yaml" in capsys.readouterr().err


def test_the_table_has_a_row_a_quantisation_and_says_what_the_columns_are(
    capsys, monkeypatch, tmp_path
):
    row = fidelity.Fidelity("talker int8", 3, (0, 2, 2), (2, 2, 2), 0.25, 0.875, -1.5)
    document = {"bundle": "ours", "against": "theirs", "frames": 2, "texts": 3,
                "rows": [row.data()], "passed": True}
    monkeypatch.setattr(fidelity, "measure", lambda *given, **options: dict(document))
    out = tmp_path / "rows.json"
    assert main(["parity", "ours", "--against", "theirs", "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"talker int8 +0 +2 +2 +2 +25\.0% +87\.5% +-1\.5", text)
    assert "3 texts, greedily, up to 2 frames" in text and out.is_file()
