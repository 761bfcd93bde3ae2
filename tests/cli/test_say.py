# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni say`, with a voice that hums."""

from __future__ import annotations

import wave
from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros import speech
from omni_ros.cli.main import main
from omni_ros.speech import SpeechChunk


@pytest.fixture
def hum(monkeypatch):
    """A voice of 100 samples a character; return what it was asked to say."""
    asked = []

    def start(text, utterance, slack=None):
        asked.append((text if isinstance(text, str) else list(text), utterance))
        yield SpeechChunk(np.full(300, 0.5, np.float32), 0, 3, "hum", {}, False)
        yield SpeechChunk(np.zeros(0, np.float32), 300, 3, "", {}, True)

    voice = SimpleNamespace(sample_rate=8000, start=start, close=lambda: None)
    monkeypatch.setattr(speech, "open_voice", lambda bundle, threads: voice)
    return asked


def test_a_text_is_written_to_a_file_at_the_voices_rate_and_the_volume_asked_for(hum, tmp_path):
    path = tmp_path / "said.wav"
    assert main(["say", "three", "words", "--out", str(path), "--volume", "0.5"]) == 0
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnframes()) == (8000, 300)
        assert np.frombuffer(file.readframes(300), "<i2")[0] == round(0.25 * 32767)
    assert hum[0][0] == "three words"


@pytest.mark.parametrize(("words", "reason"), [
    ([], "nothing to say"), (["a", "--volume", "2"], "0 to 1")])
def test_what_makes_no_sense_is_refused(hum, words, reason, capsys):
    assert main(["say", *words]) == 2
    assert reason in capsys.readouterr().err


def test_without_a_device_it_says_so_and_what_needs_none(hum, monkeypatch, tmp_path, capsys):
    pytest.importorskip("sounddevice")
    monkeypatch.setenv("PULSE_SERVER", f"unix:{tmp_path}/nobody")
    assert main(["say", "hello", "--device", "no such thing"]) == 2
    assert "--out FILE.wav" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null/said.wav"])
def test_a_file_that_cannot_be_written_is_named(hum, path, capsys):
    assert main(["say", "hello", "--out", path]) == 2
    error = capsys.readouterr().err
    assert path in error and "cannot be written" in error
