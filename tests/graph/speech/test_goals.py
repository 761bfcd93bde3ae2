# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of goals, sentences and stops; heard through a sound server."""

from __future__ import annotations

import time

import numpy as np
import pytest

from omni_ros.action import Speak

#: The humming voice says 100 characters a second.
SECOND = "a second of humming " * 5


@pytest.fixture(scope="module")
def node(speech, microphone):
    return speech.start()


@pytest.fixture(autouse=True)
def silence_between_tests(node, tools, microphone):
    node.stop()
    node.idle()
    tools.eventually(lambda: microphone.quiet(0.2), "silence")


def test_a_goal_is_heard_whole_without_a_gap_and_as_it_was_made(node, microphone, gap_free):
    began = time.monotonic()
    state, result = node.goal(SECOND, utterance_id="heard").end()
    assert (state, result.result, result.characters_spoken) == ("succeeded", 0, len(SECOND))
    assert result.first_audio_latency.nanosec > 0
    time.sleep(0.2)
    sound = microphone.sound(began)
    assert len(sound) / 44100 == pytest.approx(1.0, abs=0.02)
    assert microphone.gaps_ms(began) == []
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
    assert np.argmax(spectrum) * 44100 / len(sound) == pytest.approx(441, abs=2)
    pieces = node.pieces("heard")
    gap_free(pieces)
    assert np.abs(sound).max() == pytest.approx(max(map(max, (p.samples for p in pieces[:-1])))
                                                / 32768, rel=0.1)


def test_feedback_tells_the_clause_and_how_far_it_is(node):
    talk = node.goal(SECOND)
    talk.end()
    told = [feedback.characters_spoken for feedback in talk.feedback]
    assert told == sorted(told) and told[-1] > told[0] == 0
    assert talk.feedback[-1].speaking in SECOND and talk.feedback[-1].speaking
    assert talk.feedback[-1].first_audio_latency.nanosec > 0


def test_a_cancelled_goal_is_silent_soon_and_tells_how_far_it_came(node, microphone, tools):
    talk = node.goal(SECOND * 8)
    tools.eventually(lambda: not microphone.quiet(0.1), "sound")
    talk.cancel()
    state, result = talk.end()
    assert (state, result.result) == ("canceled", Speak.Result.RESULT_ABORTED)
    assert result.characters_spoken < 8 * len(SECOND) / 2
    tools.eventually(lambda: microphone.quiet(0.1), "silence", 2.0)
    assert node.goal("next").end()[0] == "succeeded"


def test_the_topic_says_that_an_utterance_was_stopped(node, tools):
    talk = node.goal(SECOND * 8, utterance_id="stopped")
    tools.eventually(lambda: talk.feedback, "feedback")
    talk.cancel()
    last = node.pieces("stopped")[-1]
    assert last.last and len(last.samples) == 0


def test_the_stop_service_ends_all_that_is_said_and_that_waits(node, microphone, tools):
    talks = [node.goal(SECOND * 5) for _ in range(3)]
    tools.eventually(lambda: not microphone.quiet(0.1), "sound")
    assert node.stop() == "3 utterances stopped"
    assert {talk.end()[0] for talk in talks} == {"aborted"}
    assert "stopped" in talks[2].end()[1].message
    tools.eventually(lambda: microphone.quiet(0.1), "silence", 2.0)
    assert node.stop() == "nothing was being said"
    assert node.goal("after").end()[0] == "succeeded"  # a stop without speech holds nothing back


def test_goals_wait_for_each_other_in_order(node):
    talks = [node.goal(SECOND[:30], utterance_id=name) for name in ("one", "two")]
    assert [talk.end()[0] for talk in talks] == ["succeeded"] * 2
    spoken = list(dict.fromkeys(message.utterance_id for message in node.chunks.messages))
    assert spoken.index("two") == spoken.index("one") + 1


def test_a_replacing_goal_ends_all_before_it(node):
    before = [node.goal(SECOND * 5) for _ in range(2)]
    state, result = node.goal("now me", priority=Speak.Goal.PRIORITY_REPLACE).end(5.0)
    assert state == "succeeded"
    assert [talk.end()[0] for talk in before] == ["aborted"] * 2
    assert "replace" in before[0].end()[1].message


def test_a_goal_that_wants_silence_is_refused_while_something_is_said(node):
    first = node.goal(SECOND)
    state, result = node.goal("me too", priority=Speak.Goal.PRIORITY_ONLY_IF_IDLE).end()
    assert (state, result.result) == ("aborted", Speak.Result.RESULT_REFUSED)
    assert "being said" in result.message
    assert first.end()[0] == "succeeded"
    assert node.goal("now", priority=Speak.Goal.PRIORITY_ONLY_IF_IDLE).end()[0] == "succeeded"


def test_an_utterance_is_continued_without_a_seam(node, microphone, gap_free):
    began = time.monotonic()
    first = node.goal(SECOND, utterance_id="long", more_text_follows=True)
    time.sleep(0.3)
    second = node.goal(SECOND, utterance_id="long")
    assert [talk.end()[0] for talk in (first, second)] == ["succeeded"] * 2
    assert first.end()[1].characters_spoken == second.end()[1].characters_spoken == len(SECOND)
    pieces = node.pieces("long")
    gap_free(pieces)
    assert sum(len(piece.samples) for piece in pieces) == 2 * 22000  # the hum of 200 characters
    time.sleep(0.2)
    assert microphone.gaps_ms(began) == []


def test_text_that_does_not_follow_is_not_waited_for_for_ever(node):
    state, result = node.goal("and then", more_text_follows=True, utterance_id="lone").end()
    assert (state, result.result) == ("succeeded", 0)
    assert "no more text came" in result.message
    assert node.idle().underruns == 0


def test_what_was_said_can_not_be_continued(node):
    first = node.goal(SECOND, utterance_id="closed")
    state, result = node.goal("more", utterance_id="closed").end()
    assert state == "aborted" and "last part already" in result.message
    assert first.end()[0] == "succeeded"


@pytest.mark.parametrize(("fields", "word"), [
    ({"text": " "}, "empty"), ({"text": "a", "voice": "nobody"}, "loaded are tone"),
    ({"text": "a", "volume": 3.0}, "expected 0"), ({"text": "a", "rate": 0.0}, "rate is 0"),
    ({"text": "a", "rate": 9.0}, "0.5 to 2"), ({"text": "REFUSE"}, "leave it out"),
    ({"text": "a", "priority": 7}, "priority is 7"), ({"text": "a" * 30_000}, "in parts")])
def test_what_cannot_be_said_is_refused_with_what_to_change(node, fields, word):
    state, result = node.goal(**fields).end()
    assert (state, result.result) == ("aborted", Speak.Result.RESULT_REFUSED)
    assert word in result.message
    assert result.first_audio_latency.nanosec == 0


def test_a_voice_that_fails_fails_that_goal_only(node):
    state, result = node.goal("FAIL").end()
    assert (state, result.result) == ("aborted", Speak.Result.RESULT_ABORTED)
    assert "mend it" in result.message
    assert node.goal("next").end()[0] == "succeeded"


def test_a_sentence_on_the_topic_is_said(node, microphone, tools):
    node.say("from the topic")
    tools.eventually(lambda: not microphone.quiet(0.1), "sound")


def test_half_the_volume_is_half_as_loud(node, microphone):
    peaks = []
    for volume in (1.0, 0.5):
        began = time.monotonic()
        node.goal(SECOND[:40], volume=volume).end()
        time.sleep(0.2)
        peaks.append(np.abs(microphone.sound(began)).max())
    assert peaks[1] == pytest.approx(peaks[0] / 2, rel=0.05)


def test_is_speaking_is_true_from_the_first_sound_to_the_last(node, tools):
    tools.eventually(lambda: node.is_speaking.last and not node.is_speaking.last.data, "silence")
    before = len(node.is_speaking)
    node.goal(SECOND[:30]).end()
    tools.eventually(lambda: len(node.is_speaking) >= before + 2, "two changes")
    assert [message.data for message in node.is_speaking.messages[before:]] == [True, False]


def test_an_inactive_node_takes_no_goals_and_ends_those_it_has(node):
    talk = node.goal(SECOND * 5)
    assert node.graph.change_state("tts", "deactivate")
    assert talk.end()[0] == "aborted"
    assert not node.goal("hello").handle.accepted
    assert node.graph.change_state("tts", "activate")
    assert node.goal("hello").end()[0] == "succeeded"


def test_the_status_has_the_figures(node):
    node.goal(SECOND).end()
    status = node.idle()
    assert status.underruns == 0
    assert 0.0 < status.first_audio_p50 < 5.0 and 0.0 < status.real_time_factor < 1.0
    assert list(status.timing_names) == ["hum"] and status.timing_p50[0] > 0.0
    assert status.device_state == status.DEVICE_OPEN and status.device_rate == 44100.0
