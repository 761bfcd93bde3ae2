# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is said next, without any voice."""

from __future__ import annotations

import math

import pytest

from omni_ros.speech.queue import MOST_WAITING, Priority, Refused, Request, Result, SpeechQueue


@pytest.fixture
def queue() -> SpeechQueue:
    return SpeechQueue(["joe", "ann"])


def request(text: str = "hello", **fields) -> Request:
    return Request(object(), text, **fields)


def test_goals_are_said_in_the_order_they_came(queue):
    jobs = [queue.offer(request(text))[0] for text in "abc"]
    assert [queue.next() for _ in jobs] == jobs
    assert queue.next() is None and queue.idle


def test_no_voice_means_the_first(queue):
    assert queue.offer(request())[0].voice == "joe"
    assert queue.offer(request(voice="ann"))[0].voice == "ann"


def test_replacing_hands_back_all_there_was(queue):
    jobs = [queue.offer(request())[0] for _ in range(3)]
    assert queue.next() is jobs[0]
    new, replaced = queue.offer(request(priority=Priority.REPLACE))
    assert replaced == jobs and list(queue.waiting) == [new]


def test_only_if_idle_is_refused_while_one_waits(queue):
    queue.offer(request())
    with pytest.raises(Refused, match="only if not"):
        queue.offer(request(priority=Priority.ONLY_IF_IDLE))


def test_parts_of_one_name_are_one_utterance(queue):
    job, _ = queue.offer(request("one ", utterance="u", more=True))
    assert queue.offer(request("two", utterance="u"))[0] is job
    assert [(part.begin, part.end) for part in job.parts] == [(0, 4), (4, 7)]
    assert job.feed.whole == "one two" and not job.open


def test_a_part_after_the_last_one_is_refused(queue):
    queue.offer(request(utterance="u"))
    with pytest.raises(Refused, match="last part already"):
        queue.offer(request(utterance="u"))


def test_a_replacing_goal_may_have_the_name_of_what_it_replaces_but_goes_on_with_what_is_open(queue):
    old, _ = queue.offer(request("one", utterance="u", more=True))
    assert queue.offer(request("two", utterance="u", priority=Priority.REPLACE))[0] is old
    new, replaced = queue.offer(request("three", utterance="u", priority=Priority.REPLACE))
    assert new is not old and replaced == [old] and new.name == "u"


def test_a_name_can_be_used_again_when_its_utterance_is_over(queue):
    job, _ = queue.offer(request(utterance="u"))
    queue.next()
    queue.drop(job)
    assert queue.offer(request(utterance="u"))[0] is not job


def test_a_name_that_is_made_up_is_nobody_elses(queue):
    queue.offer(request(utterance="utterance_1"))
    assert queue.offer(request())[0].name == "utterance_2"


def test_an_empty_last_part_ends_an_utterance(queue):
    job, _ = queue.offer(request("one", utterance="u", more=True))
    assert queue.offer(request("", utterance="u"))[0] is job and not job.open


def test_more_than_can_wait_is_refused_with_what_to_do(queue):
    for _ in range(MOST_WAITING):
        queue.offer(request())
    with pytest.raises(Refused, match="PRIORITY_REPLACE"):
        queue.offer(request())


@pytest.mark.parametrize("fields", [
    {"rate": math.nan}, {"rate": -1.0}, {"volume": math.nan}, {"volume": 1.5}, {"voice": "bob"},
    {"utterance": "u" * 257}, {"priority": 9}, {"text": "\n "}, {"text": "a" * 50_000}])
def test_what_makes_no_sense_is_refused(queue, fields):
    with pytest.raises(Refused):
        queue.offer(request(**fields))
    assert queue.idle


def test_the_first_end_of_an_utterance_is_believed(queue):
    job, _ = queue.offer(request())
    assert job.end(Result.ABORTED, "a") and not job.end(Result.SPOKEN, "b")
    assert job.outcome == (Result.ABORTED, "a")


def test_a_part_knows_its_share_and_where_its_last_word_ends(queue):
    job, _ = queue.offer(request("one  ", utterance="u", more=True))
    queue.offer(request("two", utterance="u"))
    assert job.parts[0].speakable_end == 3
    assert [job.parts[1].share(n) for n in (0, 5, 7, 99)] == [0, 0, 2, 3]
