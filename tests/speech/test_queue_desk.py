# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Goals, stops and a voice on two threads, without a sound card: every goal ends once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

import numpy as np
import pytest

from omni_ros.speech import SpeechChunk, SpeechError, SpeechRefused
from omni_ros.speech.playback import Speaker, SpeakerSettings
from omni_ros.speech.queue import Priority, Refused, Request, Result
from omni_ros.speech.queue_desk import Desk

PATIENCE_S = 20.0


class Hum:
    """5 ms a character, in chunks of ten."""

    sample_rate = 1000

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.running = 0

    def start(self, text, utterance, slack):
        if text == "REFUSE":
            raise SpeechRefused("not this")
        self.stopped.clear()
        return self._hum([text] if isinstance(text, str) else text)

    def _hum(self, pieces):
        self.running += 1
        try:
            assert self.running == 1, "two utterances at a time"
            first = end = 0
            for piece in pieces:
                for begin in range(0, len(piece), 10):
                    part = piece[begin:begin + 10]
                    if part == "FAIL":
                        raise SpeechError("broken")
                    if part == "CRASH":
                        raise RuntimeError("a network is broken")
                    if self.stopped.wait(0.001):
                        return
                    end += len(part)
                    yield SpeechChunk(np.full(5 * len(part), 0.5, np.float32), first, end, part,
                                      {"hum": 0.001})
                    first += 5 * len(part)
                if self.stopped.is_set():
                    return
            yield SpeechChunk(np.zeros(0, np.float32), first, end, "", {}, True)
        finally:
            self.running -= 1

    def abort(self) -> None:
        self.stopped.set()


class Room:
    """A desk at work, and all that it told."""

    def __init__(self) -> None:
        self.pieces, self.news, self.failed = [], [], []
        self.desk = Desk({"hum": Hum(), "other": Hum()}, Speaker(SpeakerSettings(device="none")),
                         publish=self.pieces.append, continue_s=0.2)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                self.desk.work()
        except BaseException as error:  # noqa: BLE001
            self.failed.append(error)

    def take(self, key, text="ten chars.", **fields) -> None:
        self.desk.take(Request(key, text, accepted_ns=time.monotonic_ns(), **fields))

    def look(self) -> None:
        self.news += self.desk.look()

    def ends(self, count: int) -> dict:
        """Wait for the ends of so many goals; by key."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.look()
            done = {news.key: news for news in self.news if news.result is not None}
            if len(done) >= count or self.failed:
                break
            time.sleep(0.005)
        assert not self.failed, self.failed
        assert len(done) == count
        return done

    def close(self) -> None:
        self._stop.set()
        self.desk.stop("the test is over")
        self.desk.wake()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive() and not self.failed


@pytest.fixture
def room():
    room = Room()
    yield room
    room.close()


def test_a_goal_is_spoken_and_its_pieces_are_numbered(room):
    room.take("a", "ten chars." * 3)
    end = room.ends(1)["a"]
    assert (end.result, end.characters, end.text) == (
        Result.SPOKEN, 30, "no sound device, as asked: on the topic only")
    assert end.audio_s == pytest.approx(0.15)
    assert [piece.sequence for piece in room.pieces] == [0, 1, 2, 3]
    assert [piece.last for piece in room.pieces] == [False] * 3 + [True]


def test_a_stop_ends_the_goal_before_the_voice_has_come_back(room):
    room.take("a", "x" * 1000)
    time.sleep(0.1)
    room.desk.stop("enough")
    room.look()
    [end] = [news for news in room.news if news.result is not None]
    assert (end.result, end.text) == (Result.ABORTED, "enough") and 0 <= end.characters < 1000


def test_after_a_stop_the_topic_is_told_not_to_play_the_rest(room):
    room.take("a", "x" * 1000)
    time.sleep(0.1)
    room.desk.stop("enough")
    room.take("b")
    room.ends(2)
    first = room.pieces[0].utterance
    last = [piece for piece in room.pieces if piece.utterance == first][-1]
    assert last.last and len(last.samples) == 0


def test_a_cancel_of_one_part_ends_the_whole_utterance(room):
    room.take("a", "x" * 100, utterance="u", more=True)
    room.take("b", "x" * 100, utterance="u")
    room.take("c", "after")
    assert room.desk.cancel("b")
    ends = room.ends(3)
    assert ends["a"].result is ends["b"].result is Result.ABORTED
    assert ends["c"].result is Result.SPOKEN
    assert not room.desk.cancel("b")


def test_a_part_ends_when_its_own_text_has_been_spoken(room):
    room.take("a", "first part", utterance="u", more=True)
    assert set(room.ends(0)) == set()
    room.take("b", "x" * 200, utterance="u")
    room.ends(1)
    assert [news.key for news in room.news if news.result is not None] == ["a"]
    assert room.ends(2)["b"].characters == 200


@pytest.mark.parametrize(("text", "result", "word"), [
    ("REFUSE", Result.REFUSED, "not this"), ("FAIL", Result.ABORTED, "broken")])
def test_what_the_voice_cannot_do_ends_that_goal_and_no_other(room, text, result, word):
    room.take("a", text)
    room.take("b")
    ends = room.ends(2)
    assert ends["a"].result is result and word in ends["a"].text
    assert ends["b"].result is Result.SPOKEN


def test_what_a_voice_fails_at_unforeseen_is_not_told_as_spoken(room):
    room.take("a", "ten chars.CRASH")
    while not room.failed:
        time.sleep(0.005)
    assert isinstance(room.failed.pop(), RuntimeError)
    [end] = room.ends(1).values()
    assert end.result is Result.ABORTED and "RuntimeError: a network is broken" in end.text
    assert "say it again" in end.text and room.desk.queue.idle


def test_a_refused_goal_is_counted_and_told_at_once(room):
    with pytest.raises(Refused):
        room.take("a", voice="nobody")
    assert room.desk.tally.figures().refused == 1


def test_the_volume_is_of_the_topic_too(room):
    room.desk.volume = 0.5
    room.take("a", volume=0.5)
    room.ends(1)
    assert room.pieces[0].samples.max() == pytest.approx(0.125)


def test_a_stop_at_the_last_moment_leaves_no_voice_that_seems_to_hang(room, monkeypatch):
    finish = room.desk._finish

    def stopped_first(run):
        room.desk.stop("just before its end")
        finish(run)

    monkeypatch.setattr(room.desk, "_finish", stopped_first)
    room.take("a")
    room.ends(1)
    room.take("b")
    room.ends(2)
    deadline = time.monotonic() + PATIENCE_S
    while not room.desk.queue.idle and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.01)
    assert room.desk.stuck_s() == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_when_every_goal_ends_exactly_once(room, seed):
    chance, taken, refused = random.Random(seed), [], 0
    for number in range(120):
        what = chance.random()
        if what < 0.1:
            room.desk.stop("stop")
        elif what < 0.25 and taken:
            room.desk.cancel(chance.choice(taken))
        else:
            try:
                room.take(number, chance.choice(["REFUSE", "FAIL", "x" * 30, "short", "y" * 80]),
                          priority=chance.choice(list(Priority)), voice=chance.choice(["", "other"]),
                          utterance=chance.choice(["", "u", "v"]), more=chance.random() < 0.3)
                taken.append(number)
            except Refused:
                refused += 1
        room.look()
        time.sleep(chance.uniform(0.0, 0.01))
    room.ends(len(taken))
    counts = Counter(news.key for news in room.news if news.result is not None)
    assert set(counts.values()) == {1}
    figures = room.desk.tally.figures()
    assert figures.spoken + figures.aborted + figures.refused == figures.goals == len(taken) + refused
    for utterance in {piece.utterance for piece in room.pieces}:
        lasts = [piece.last for piece in room.pieces if piece.utterance == utterance]
        assert lasts[-1]
