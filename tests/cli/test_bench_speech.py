# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench speech`: all figures are there and say what they are of."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

from omni_ros.bundles import BundleError
from omni_ros.bundles.named import bundle_folder
from omni_ros.cli import UsageError, bench_speech, bench_speech_recognise, bench_speech_sentences, main
from omni_ros.cli.bench_speech_recognise import errors, heard, measure, save
from omni_ros.speech.text import normalise

#: Takes the place of piper-tts and of the recogniser: answers as they do.
STAND_IN = """
import json, sys
print(json.dumps({"ready": 0.1, "piper": "0", "onnxruntime": "0"}), flush=True)
for line in sys.stdin:
    print(json.dumps({"first": 0.4, "total": 0.5, "audio": 4.0, "gap": 0.0, "text": "a"}), flush=True)
"""


def need_voice() -> None:
    try:
        bundle_folder("voice_joe")
    except BundleError:
        pytest.skip("the voice was not exported; make setup does it")
    if shutil.which("espeak-ng") is None:
        pytest.skip("espeak-ng is not installed")


def test_a_run_beside_another_program_has_both_sides_stages_and_provenance(
    tmp_path, capsys, monkeypatch
):
    need_voice()
    monkeypatch.setattr(bench_speech, "script", lambda python, name: [python, "-c", STAND_IN])
    # Two words instead of a paragraph: here it is about the report.
    monkeypatch.setattr(bench_speech_sentences, "TIMED", {"phrase": "Yes.", "sentence": "Red."})
    out = tmp_path / "figures.json"
    # One thread: the pool of this process may have been set by other tests, to that.
    status = main.main(["bench", "speech", "--threads", "1", "--rounds", "1",
                        "--piper", sys.executable, "--onnx", "x", "--json", str(out)])  # fmt: skip
    text = capsys.readouterr().out
    assert status == 0
    assert "piper-tts / omni_ros, round by round" in text and "first audio ms" in text
    document = json.loads(out.read_text())
    assert set(document["runs"]) == {"omni_ros", "piper-tts"}
    for key, runs in document["runs"]["omni_ros"].items():
        assert len(runs) == 1 and runs[0]["first"] < runs[0]["total"], key
        assert set(runs[0]["stages"]) == {"phonemes", "text", "flow", "decoder"}
    assert document["streaming"]["largest_difference"] < 1e-5
    assert document["provenance"]["cpus_online"]


def test_a_python_that_is_none_is_named(tmp_path):
    with pytest.raises(UsageError, match="expected a Python with piper-tts"):
        bench_speech.Asked([tmp_path / "python"], "piper-tts")


def test_a_python_without_what_is_wanted_says_what_it_said():
    with pytest.raises(UsageError, match="the recogniser ended: .*No module named 'faster_nothing'"):
        bench_speech.Asked([sys.executable, "-c", "import faster_nothing"], "the recogniser")


def test_rounds_below_one_are_refused(capsys):
    assert main.main(["bench", "speech", "--rounds", "0"]) == 2
    assert "--rounds 0: expected 1 to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wanted", "found", "count"),
    [("a b c", "a b c", 0), ("a b c", "a x c", 1), ("a b c", "a c", 1), ("a b", "a b c d", 2),
     ("a b", "", 2), ("", "a", 1)],
)
def test_word_errors_are_the_fewest_changes(wanted, found, count):
    assert errors(wanted.split(), found.split()) == count


def test_figures_that_a_recogniser_writes_are_heard_as_words():
    assert heard("It costs $3.50, Mr. Lee!", normalise) == (
        "it costs three dollars and fifty cents mister lee")
    assert heard("I am late, it is 3:15pm.", normalise) == "i am late it is three fifteen p m"


def test_the_lists_are_of_the_length_that_is_reported_and_their_words_are_plain():
    assert len(bench_speech_sentences.PLAIN) == 10
    assert len(bench_speech_sentences.WRITTEN) == 50
    for text, words in bench_speech_sentences.WRITTEN:
        assert words == " ".join(words.lower().split()) and not any(c.isdigit() for c in words), text


def test_what_was_misheard_is_reported_with_its_seed(tmp_path):
    found = measure(lambda text, seed: (np.zeros(8, np.float32), 22050), lambda path: "nothing",
                    normalise, lambda line: None)  # fmt: skip
    assert found["plain"]["error_rates"] == [1.0, 1.0, 1.0]
    assert len(found["written"]["misheard"]) == 150
    assert {"text", "wanted", "heard", "seed"} == set(found["written"]["misheard"][0])


def test_a_wav_file_holds_what_was_said(tmp_path):
    import wave

    save(tmp_path / "a.wav", np.array([0.0, 0.5, -2.0], np.float32), 22050)
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert (file.getframerate(), file.getnframes()) == (22050, 3)
        assert np.frombuffer(file.readframes(3), "<i2").tolist() == [0, 16383, -32767]
