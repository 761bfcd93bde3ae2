# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sound devices that are not there, go, come back, or hang."""

from __future__ import annotations

import os
import time

import pytest

from omni_ros.action import Speak

LONG = "a long text that hums " * 25


@pytest.fixture
def server(has_sound_server, talk_tools, tmp_path, monkeypatch):
    """A sound server of one test, not started."""
    server = talk_tools.SoundServer(tmp_path)
    monkeypatch.setenv("PULSE_SERVER", server.variables["PULSE_SERVER"])
    yield server
    server.stop()


def test_without_a_device_speech_goes_to_the_topic_and_a_warning_says_so(
        own_speech, gap_free, monkeypatch, tmp_path):
    monkeypatch.setenv("PULSE_SERVER", f"unix:{tmp_path}/nobody")
    speech = own_speech.start()
    state, result = speech.goal(LONG[:100], utterance_id="unheard").end()
    assert (state, result.result) == ("succeeded", Speak.Result.RESULT_SPOKEN)
    assert "On the topic only" in result.message
    gap_free(speech.pieces("unheard"))
    assert speech.idle().device_state == speech.status.last.DEVICE_MISSING
    assert "[WARN]" in speech.process.output and "no sound device" in speech.process.output
    # And a voice that fails as no voice should ends the node, not before the goals are told.
    talks = [speech.goal(LONG[:440] + "CRASH"), speech.goal("waits")]
    (state, result), (waited, other) = (talk.end() for talk in talks)
    assert (state, waited, result.result) == ("aborted", "aborted", Speak.Result.RESULT_ABORTED)
    assert "RuntimeError: a network of this voice is broken" in result.message
    assert "deactivated" in other.message
    assert speech.process.popen.wait(10.0) == 1


def test_no_device_can_be_asked_for_and_is_no_warning(own_speech, tools):
    speech = own_speech.start(device="none")
    assert speech.goal("hello").end()[0] == "succeeded"
    assert speech.idle().device_state == speech.status.last.DEVICE_NONE
    assert "[WARN]" not in speech.process.output
    # A Ctrl-C in the middle: who waits for the goals is told.
    talks = [speech.goal(LONG), speech.goal("waits")]
    count = len(talks[0].feedback) + 2
    tools.eventually(lambda: len(talks[0].feedback) > count, "speech")
    assert speech.process.end() == 0
    for talk in talks:
        state, result = talk.end(5.0)
        assert (state, result.result) == ("aborted", Speak.Result.RESULT_ABORTED)
        assert "deactivated" in result.message
    assert talks[0].end()[1].characters_spoken and "Traceback" not in speech.process.output


def test_a_device_is_found_by_a_part_of_its_name(own_speech, server):
    server.start()
    speech = own_speech.start(device="PULS")
    assert "'pulse'" in speech.idle().device
    assert speech.status.last.device_state == speech.status.last.DEVICE_OPEN


def test_a_device_that_is_not_there_is_answered_with_those_that_are(
        own_speech, server, tools, monkeypatch):
    monkeypatch.setenv("STUCK_S", "0.5")
    server.start()
    speech = own_speech.start(device="loudspeaker 9")
    text = speech.idle().device
    assert "'loudspeaker 9'" in text and "'pulse'" in text
    assert speech.goal("hello").end()[0] == "succeeded"
    # And a voice that never comes back is the end of the node, not before who waits is told.
    talks = [speech.goal(LONG[:20] + "HANG"), speech.goal("waits")]
    tools.eventually(lambda: talks[0].feedback and talks[0].feedback[-1].characters_spoken, "speech")
    talks[0].cancel()
    assert [talk.end(8.0)[0] for talk in talks] == ["canceled", "aborted"]
    assert speech.process.popen.wait(8.0) == 1
    assert "not come back" in speech.process.output and "Traceback" not in speech.process.output


def test_a_device_that_is_pulled_out_fails_the_goal_and_is_used_again_when_it_is_back(
        own_speech, server, talk_tools, tools):
    server.start()
    speech = own_speech.start()
    talk = speech.goal(LONG * 2)
    tools.eventually(lambda: talk.feedback and talk.feedback[-1].characters_spoken, "speech")
    server.stop()
    state, result = talk.end()
    assert (state, result.result) == ("aborted", Speak.Result.RESULT_ABORTED)
    assert "sound device was lost" in result.message
    assert 0 < result.characters_spoken < len(LONG)
    assert "topic only" in speech.goal("meanwhile").end()[1].message
    server.start()
    speech.until(lambda status: status.device_state == status.DEVICE_OPEN, "the device again")
    microphone = talk_tools.Microphone(server)
    began = time.monotonic()
    assert speech.goal(LONG[:60]).end()[1].message == ""
    time.sleep(0.2)
    assert len(microphone.sound(began)) / talk_tools.HEARD_HZ == pytest.approx(0.6, abs=0.03)
    microphone.close()
    assert speech.status.last.device_losses == 1


def test_a_device_that_hangs_leaves_the_node_answering_and_a_cancel_working(
        own_speech, server, tools):
    server.start()
    speech = own_speech.start()
    talk = speech.goal(LONG * 2)
    tools.eventually(lambda: talk.feedback and talk.feedback[-1].characters_spoken, "speech")
    server.hang()
    time.sleep(0.5)
    talk.cancel()
    assert talk.end(5.0)[0] == "canceled"
    speech.until(lambda status: status.device_state == status.DEVICE_MISSING, "a lost device")
    assert "takes no sound" in speech.status.last.device
    assert "topic only" in speech.goal("still there").end()[1].message
    assert speech.graph.state("tts") == "active"
    server.go_on()
    speech.until(lambda status: status.device_state == status.DEVICE_OPEN, "the device again")
    assert speech.goal("and heard").end()[1].message == ""


def test_a_goal_is_not_held_up_by_a_device_that_hangs(own_speech, server, tools):
    server.start()
    speech = own_speech.start()
    server.hang()
    state, result = speech.goal(LONG).end(15.0)
    assert state == "aborted" and "takes no sound" in result.message


def test_what_plays_ends_with_the_node_however_that_ends(own_speech, server, tools):
    server.start()
    speech = own_speech.start()
    speech.goal("hello").end()
    children = [int(pid) for pid in os.listdir("/proc") if pid.isdecimal()
                and _parent(int(pid)) == speech.process.popen.pid]
    assert len(children) == 1
    speech.process.kill()
    tools.eventually(lambda: not os.path.exists(f"/proc/{children[0]}"), "the end of the speaker")


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0
