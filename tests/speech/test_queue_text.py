# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Text that comes in pieces."""

from __future__ import annotations

import threading
import time

from omni_ros.speech.queue_text import TextFeed


def test_pieces_come_in_order_and_end_after_the_last():
    feed = TextFeed(1.0)
    feed.put("a", last=False)
    feed.put("b", last=True)
    assert list(feed) == ["a", "b"] and feed.length == 2


def test_a_voice_that_waits_gets_nothing_now_and_then():
    feed = TextFeed(5.0)
    pieces = iter(feed)
    waits = []
    feed.on_wait = lambda: waits.append(True)
    assert [next(pieces), next(pieces)] == ["", ""] and feed.starved and waits == [True]
    feed.put("more", last=True)
    assert list(pieces) == ["more"] and not feed.starved


def test_text_that_never_comes_ends_the_utterance():
    feed = TextFeed(0.05)
    assert set(feed) <= {""} and feed.timed_out and feed.closed


def test_patience_begins_when_there_is_nothing_to_be_heard():
    feed = TextFeed(0.0)
    heard = [True] * 3
    feed.audible = lambda: bool(heard and heard.pop())
    assert list(feed) == [""] * 3


def test_the_time_that_an_utterance_waits_for_its_turn_is_no_silence():
    feed = TextFeed(0.2)
    feed.put("and then", last=False)
    time.sleep(0.3)
    pieces = iter(feed)
    assert [next(pieces), next(pieces)] == ["and then", ""] and not feed.timed_out


def test_a_close_wakes_the_voice():
    feed = TextFeed(60.0)
    threading.Timer(0.05, feed.close).start()
    assert set(feed) <= {""} and not feed.timed_out
