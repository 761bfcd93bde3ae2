# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The speech node with a Qwen3-TTS voice: one parameter says so. The weights are tiny and random."""

from __future__ import annotations

import os
import random
import time

import pytest

from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.named import bundle_folder

FRAMES = 15
FRAME_S = 0.08


@pytest.fixture(scope="module")
def node(speech, microphone):
    try:
        bundle_folder("qwen_tiny")
    except BundleError as error:
        pytest.skip(f"{error}; make setup-qwen exports it")
    return speech.start("tts", voice="qwen_tiny", voice_options=[f"max_frames={FRAMES}"])


def seconds(duration) -> float:
    return duration.sec + 1e-9 * duration.nanosec


def test_a_goal_is_spoken_and_heard_whole(node, microphone, gap_free):
    began = time.monotonic()
    name = f"heard {began}"
    state, result = node.goal("Hello there.", utterance_id=name).end()
    assert (state, result.characters_spoken) == ("succeeded", len("Hello there."))
    assert seconds(result.audio_duration) == pytest.approx(FRAMES * FRAME_S)
    gap_free(node.pieces(name))
    time.sleep(0.2)
    assert len(microphone.sound(began)) / 44100 > 0.9 * FRAMES * FRAME_S
    status = node.idle()
    assert status.voice == "qwen_tiny"
    if os.getloadavg()[0] < os.cpu_count():  # of a machine that others overload, all may be late
        assert status.underruns == 0
    assert {"talker", "predictor", "vocoder"} <= set(status.timing_names)


def test_goals_cancelled_at_any_moment_leave_nothing_behind(node, microphone, tools):
    chance, pid = random.Random(3), node.process.popen.pid

    def resident_kb() -> int:
        return int(open(f"/proc/{pid}/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    for number in range(4):
        assert node.goal("Go.", utterance_id=f"before {number}").end()[0] == "succeeded"
    before = resident_kb()
    for number in range(10):
        talk = node.goal("Something that takes longer to say.", utterance_id=f"stopped {number}")
        time.sleep(chance.uniform(0.0, 0.3))
        talk.cancel()
        assert talk.end()[0] == "canceled"
    tools.eventually(lambda: microphone.quiet(0.1), "silence", 2.0)
    assert node.goal("Go.", utterance_id="after").end()[0] == "succeeded"
    assert resident_kb() - before < 5_000
    first, after = node.pieces("before 3"), node.pieces("after")
    assert sum(len(m.samples) for m in first) == sum(len(m.samples) for m in after)


def test_text_that_has_no_word_is_refused_and_the_next_is_said(node):
    state, result = node.goal("...").end()
    assert state == "aborted" and "spoken" in result.message
    assert node.goal("Go.").end()[0] == "succeeded"
