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
#: Goals of the long test; more of them by hand.
GOALS = int(os.environ.get("OMNI_TEST_GOALS", "9"))


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


def held(pid: int) -> tuple[int, int, int]:
    """Files, threads and resident kilobytes of a process."""
    fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status").read().splitlines())
    return (len(os.listdir(f"/proc/{pid}/fd")), int(fields["Threads"]),
            int(fields["VmRSS"].split()[0]))


@pytest.mark.timeout(300 + 3 * GOALS)
def test_goal_after_goal_a_third_cancelled_at_any_moment_leaves_nothing_behind(
    node, microphone, tools
):
    chance, pid, told = random.Random(3), node.process.popen.pid, node.idle()
    for number in range(2):
        assert node.goal("Go.", utterance_id=f"before {number}").end()[0] == "succeeded"
    before = held(pid)
    ends = []
    for number in range(GOALS):
        talk = node.goal("Go." if number % 3 else "Something that takes longer to say.")
        if number % 3 == 0:
            time.sleep(chance.uniform(0.0, 0.3))
            talk.cancel()
        ends.append(talk.end()[0])
    assert ends == ["succeeded" if number % 3 else "canceled" for number in range(GOALS)]
    tools.eventually(lambda: microphone.quiet(0.1), "silence", 2.0)
    assert node.goal("Go.", utterance_id="after").end()[0] == "succeeded"
    after = held(pid)
    print(f"files, threads, resident kB: {before} before {GOALS} goals, {after} behind them")
    assert after[0] <= before[0] + 1 and after[1] <= before[1]
    assert after[2] - before[2] < 5_000
    spoken, stopped = GOALS + 3 - ends.count("canceled"), ends.count("canceled")
    status = node.until(lambda s: s.goals == told.goals + GOALS + 3, "all goals counted")
    assert (status.spoken - told.spoken, status.aborted - told.aborted) == (spoken, stopped)
    first, last = node.pieces("before 1"), node.pieces("after")
    assert sum(len(m.samples) for m in first) == sum(len(m.samples) for m in last)


def test_text_that_has_no_word_is_refused_and_the_next_is_said(node):
    state, result = node.goal("...").end()
    assert state == "aborted" and "spoken" in result.message
    assert node.goal("Go.").end()[0] == "succeeded"
