# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Orders to a process that plays and does not read them for a while, as on an overloaded machine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading

import numpy as np
import pytest

from omni_ros.speech.playback import DeviceState, Speaker, SpeakerSettings
from omni_ros.speech.playback_link import Link
from omni_ros.speech.playback_wire import MOST_BYTES, MOST_SAMPLES, Order, connection, unpack

RATE = 22050.0


@pytest.fixture
def slow():
    """A speaker, and the other end of its socket, which nobody reads but the test."""
    ours, theirs = connection()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    speaker = Speaker()
    speaker._link = link = Link(process, ours, tempfile.TemporaryFile())
    speaker.state = DeviceState.OPEN
    theirs.setblocking(False)
    yield speaker, theirs, process
    if speaker._link is not None:
        link.close()
    theirs.close()
    process.stdin.close()


def orders(theirs) -> list[Order]:
    found = []
    while True:
        try:
            found.append(unpack(theirs.recv(MOST_BYTES))[0])
        except BlockingIOError:
            return found


def test_samples_leave_room_for_a_stop_and_for_what_is_said_next(slow):
    speaker, theirs, process = slow
    track = speaker.begin(RATE)
    samples = np.zeros(8 * MOST_SAMPLES, np.float32)
    writer = threading.Thread(target=speaker.write, args=(track, samples))
    writer.start()
    writer.join(0.3)
    assert writer.is_alive() and 0 < track.written < len(samples)  # there is no more room
    speaker.clear()
    writer.join(5.0)
    assert not writer.is_alive()
    following = speaker.begin(RATE)
    assert process.poll() is None and not following.unsent
    assert [order for order in orders(theirs) if order is not Order.SAMPLES] == [
        Order.BEGIN, Order.CLEAR, Order.BEGIN]


def test_an_utterance_begins_with_its_order_even_where_that_had_no_room_at_first(slow):
    speaker, theirs, _ = slow
    while speaker._link.send(b"\0" * 20):
        pass
    track = speaker.begin(RATE)
    assert track.unsent
    theirs.recv(MOST_BYTES)
    while True:
        try:
            theirs.recv(MOST_BYTES)
        except BlockingIOError:
            break
    assert speaker.write(track, np.zeros(100, np.float32))
    assert orders(theirs) == [Order.BEGIN, Order.SAMPLES]


def test_a_report_that_nobody_understands_ends_the_utterance_and_not_the_watching(slow, monkeypatch):
    speaker, theirs, _ = slow
    monkeypatch.setattr("omni_ros.speech.playback.spawn", lambda settings: speaker._link)
    track = speaker.begin(RATE)
    theirs.send(b"no json")
    assert speaker._run_once() is False
    assert "JSONDecodeError" in track.lost and speaker.state is DeviceState.MISSING


@pytest.mark.parametrize(("device", "state"), [
    ("a\0b", DeviceState.MISSING), (" NONE", DeviceState.NONE)])
def test_an_odd_name_of_a_device_is_told_at_once_and_not_waited_for(device, state):
    speaker = Speaker(SpeakerSettings(device=device))
    try:
        assert not speaker.open(5.0) and speaker.state is state
    finally:
        speaker.close()
