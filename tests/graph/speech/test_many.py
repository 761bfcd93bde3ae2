# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Goal after goal, a third of them cancelled at some moment: nothing piles up."""

from __future__ import annotations

import os
import random
import threading
import time

import pytest

from omni_ros.msg import SpeechStatus


def held(pid: int) -> tuple[int, int, int]:
    """Files, threads and resident kilobytes of a process."""
    fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status").read().splitlines())
    return (len(os.listdir(f"/proc/{pid}/fd")), int(fields["Threads"]),
            int(fields["VmRSS"].split()[0]))


def say_and_maybe_cancel(speech, number: int, chance: random.Random) -> str:
    talk = speech.goal(f"goal {number}")
    if number % 3 == 0:
        threading.Event().wait(chance.uniform(0.0, 0.15))
        talk.cancel()
    return talk.end()[0]


@pytest.mark.parametrize("count", [
    pytest.param(100), pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_every_goal_ends_and_nothing_is_left_of_it(own_speech, count):
    speech = own_speech.start(device="none")
    chance, pid = random.Random(7), speech.process.popen.pid
    ends = [say_and_maybe_cancel(speech, number, chance) for number in range(30)]
    before = held(pid)
    ends += [say_and_maybe_cancel(speech, number, chance) for number in range(30, count)]
    after = held(pid)
    assert set(ends) == {"succeeded", "canceled"}
    assert all(end == "succeeded" for number, end in enumerate(ends) if number % 3)
    time.sleep(1.5)
    status: SpeechStatus = speech.idle()
    assert status.goals == count and status.spoken + status.aborted == count
    assert after[0] <= before[0] + 1 and after[1] <= before[1]
    assert after[2] - before[2] < 5_000  # 5 MB
