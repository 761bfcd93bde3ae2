# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which pictures are kept, and what becomes of messages that the disk is too slow for."""

from __future__ import annotations

import struct
import threading

import pytest

pytest.importorskip("mcap")

from omni_ros.replay.recording import BagWriter, Limits  # noqa: E402
from omni_ros.replay.recording_pictures import KEEP_S, WAIT_S, Held, PictureBox, stamp_of  # noqa: E402
from omni_ros.replay.recording_thread import WritingThread  # noqa: E402
from omni_ros.replay.recording_topics import Topic  # noqa: E402

TEXT = Topic("/say", "std_msgs/msg/String", "string data\n")


def held(at_s: float = 0.0, size: int = 10) -> Held:
    return Held(b"x" * size, 1, 1, at_s)


def test_a_picture_that_was_used_is_given_once():
    box = PictureBox()
    box.add("/eye", 7, held())
    assert box.want("/eye", 7, 0.1) is not None
    assert box.want("/eye", 7, 0.2) is None
    assert box.missing(100.0) == []


def test_a_picture_that_comes_after_it_was_asked_for_is_given_as_it_comes():
    box = PictureBox()
    assert box.want("/eye", 7, 0.0) is None
    assert box.add("/eye", 6, held()) is None
    assert box.add("/eye", 7, held()) is not None
    assert box.missing(100.0) == []


def test_a_picture_that_does_not_come_is_missing_and_said_so_once():
    box = PictureBox()
    box.want("/eye", 7, 0.0)
    assert box.missing(WAIT_S * 0.9) == []
    assert box.missing(WAIT_S * 1.1) == [("/eye", 7)]
    assert box.missing(100.0, all_of_them=True) == []


def test_pictures_that_nobody_used_go_after_a_time_and_before_memory_does():
    box = PictureBox(keep_bytes=100)
    box.add("/eye", 1, held(0.0))
    box.add("/eye", 2, held(KEEP_S + 1.0))
    assert box.want("/eye", 1, 0.0) is None
    for stamp in range(10, 30):
        box.add("/eye", stamp, held(KEEP_S + 1.0))
    assert box.want("/eye", 10, 0.0) is None and box.want("/eye", 29, 0.0) is not None


@pytest.mark.parametrize("order, flag", [("<", 1), (">", 0)])
def test_a_stamp_is_read_in_either_byte_order(order, flag):
    data = bytes([0, flag, 0, 0]) + struct.pack(order + "iI", 12, 34)
    assert stamp_of(data) == 12_000_000_034


def test_bytes_that_are_no_header_are_refused():
    with pytest.raises(ValueError, match="3 bytes"):
        stamp_of(b"abc")


class SlowBag(BagWriter):
    """A disk that does not answer until it is told to."""

    gate: threading.Event

    def write(self, topic, data, log_ns, sent_ns=None):
        self.gate.wait(30.0)
        return super().write(topic, data, log_ns, sent_ns)


def test_what_a_slow_disk_cannot_take_is_lost_and_counted_and_nobody_waits(tmp_path):
    gate = threading.Event()

    def make() -> SlowBag:
        bag = SlowBag(tmp_path / "bag", Limits(free_bytes=0))
        bag.gate = gate
        return bag

    thread = WritingThread(make, queue_bytes=1000)
    thread.add(TEXT)
    taken = [thread.write("/say", b"\0" * 100, at, at) for at in range(50)]
    assert taken.count(True) <= 20
    gate.set()
    assert thread.close()
    assert thread.written["/say"] == taken.count(True)
    assert thread.lost == {"/say": taken.count(False)}


def test_a_fault_of_the_disk_thread_is_told_and_what_comes_then_is_counted(tmp_path):
    class Broken(BagWriter):
        def write(self, *_):
            raise RuntimeError("no more")

    thread = WritingThread(lambda: Broken(tmp_path / "bag", Limits(free_bytes=0)))
    thread.add(TEXT)
    thread.write("/say", b"a", 1, 1)
    thread.close()
    assert "no more" in thread.stopped
    assert not thread.write("/say", b"b", 2, 2)
    assert thread.lost["/say"] >= 1
