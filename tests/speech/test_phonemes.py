# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""espeak-ng, kept warm."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time

import pytest

from omni_ros.requirements import MissingDependency
from omni_ros.speech import phonemes
from omni_ros.speech.phonemes import Espeak
from omni_ros.speech.voice import SpeechError

needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not here")


@pytest.fixture(scope="module")
def espeak():
    with Espeak() as found:
        yield found


@needs_espeak
def test_words_become_phonemes_and_marks_stay(espeak):
    assert espeak.phonemes("Hello world") == "h\u0259l\u02c8o\u028a w\u02c8\u025c\u02d0ld"
    said = espeak.phonemes("Yes, it is. Is it? Go!")
    assert [mark for mark in said if mark in ",.?!"] == [",", ".", "?", "!"]
    assert "\n" not in said


@needs_espeak
@pytest.mark.parametrize("text", ["", " ", ".", ",,,", "n", "q q q", "q q q\n q"])
def test_what_has_no_phonemes_or_looks_like_the_mark_does_not_stop_it(espeak, text):
    espeak.phonemes(text)
    assert espeak.phonemes("ok") == "\u02cco\u028ak\u02c8e\u026a"


@needs_espeak
def test_a_line_longer_than_espeak_takes_is_whole(espeak):
    assert espeak.phonemes("word " * 400).count("w\u02c8\u025c\u02d0d") == 400
    assert espeak.phonemes("o" * 2000)


@needs_espeak
def test_it_is_started_again_when_it_was_killed(espeak):
    before = espeak._process.pid
    os.kill(before, signal.SIGKILL)
    assert espeak.phonemes("hello") == "h\u0259l\u02c8o\u028a"
    assert espeak._process.pid != before


@needs_espeak
def test_a_stopped_one_is_given_up_when_nobody_wants_the_answer(espeak):
    espeak.phonemes("hello")
    os.kill(espeak._process.pid, signal.SIGSTOP)
    wanted = threading.Event()
    threading.Timer(0.1, wanted.set).start()
    began = time.monotonic()
    assert espeak.phonemes("good bye", lambda: not wanted.is_set()) == ""
    assert time.monotonic() - began < phonemes.TIMEOUT_S
    # What it would have answered belongs to nobody.
    assert espeak.phonemes("hello") == "h\u0259l\u02c8o\u028a"


@needs_espeak
def test_one_that_hangs_is_a_fault_with_its_name(monkeypatch):
    monkeypatch.setattr(phonemes, "TIMEOUT_S", 0.2)
    with Espeak() as espeak:
        monkeypatch.setattr(espeak, "_mark", "never")
        monkeypatch.setattr(espeak, "_begin", lambda: None)
        with pytest.raises((SpeechError, AssertionError)):
            espeak.phonemes("hello")


@needs_espeak
def test_nothing_is_left_of_it_when_it_is_closed():
    files = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        espeak = Espeak()
        process = espeak._process.pid
        espeak.phonemes("hello")
        espeak.close()
        espeak.close()
        assert not os.path.exists(f"/proc/{process}")
    assert len(os.listdir("/proc/self/fd")) == files


@needs_espeak
def test_a_voice_that_espeak_does_not_have_is_refused_by_its_name():
    with pytest.raises(SpeechError, match="with the voice 'xx-nobody'"):
        Espeak("xx-nobody")


@needs_espeak
def test_it_is_confined_to_the_cores_that_are_given():
    core = min(os.sched_getaffinity(0))
    with Espeak(cpus=[core]) as espeak:
        assert os.sched_getaffinity(espeak._process.pid) == {core}


def test_a_machine_without_it_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingDependency, match="sudo apt install espeak-ng"):
        Espeak()
