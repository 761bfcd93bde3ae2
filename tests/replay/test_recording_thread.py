# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that writes a bag: what it is given is on the disk, or counted as lost."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from omni_ros.replay.recording_thread import WritingThread


class Bag:
    """Takes messages until one of them cannot be written; waits for `go` before the first."""

    def __init__(self, good: int) -> None:
        self.good, self.go = good, threading.Event()
        self.written, self.lost, self.stopped = {}, {}, ""

    def write(self, topic: str, data: bytes, log_ns: int, sent_ns: int) -> None:
        self.go.wait(10.0)
        if sum(self.written.values()) == self.good:
            raise RuntimeError("the compressor is broken")
        self.written[topic] = self.written.get(topic, 0) + 1

    def tick(self) -> None:
        pass

    def close(self) -> None:
        pass


def fed(good: int, count: int) -> tuple[WritingThread, SimpleNamespace]:
    """Hand over messages, and end."""
    bag = Bag(good)
    thread = WritingThread(lambda: bag)
    taken = sum(thread.write("/say", b"1234", number, 0) for number in range(count))
    bag.go.set()
    ended = thread.close()
    return thread, SimpleNamespace(taken=taken, ended=ended)


def test_all_that_was_handed_over_is_written():
    thread, found = fed(good=100, count=20)
    assert found.ended and found.taken == 20
    assert thread.written == {"/say": 20} and thread.lost == {} and not thread.stopped


def test_what_waits_when_writing_fails_is_counted_as_lost():
    thread, found = fed(good=5, count=20)
    assert found.ended and found.taken == 20
    assert thread.written == {"/say": 5} and thread.lost == {"/say": 15}
    assert thread.stopped == "RuntimeError: the compressor is broken"


def test_what_comes_after_that_is_counted_as_lost_too():
    thread, _ = fed(good=5, count=20)
    assert not thread.write("/say", b"1234", 20, 0)
    assert thread.lost == {"/say": 16}
