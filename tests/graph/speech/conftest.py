# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A sound server of the tests' own, whose sound is recorded, and the speech node before it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")
pytest.importorskip("sounddevice")

from rclpy.action import ActionClient  # noqa: E402
from std_msgs.msg import Bool, String  # noqa: E402

from omni_ros.action import Speak  # noqa: E402
from omni_ros.cli.null_sink import HEARD_HZ, Microphone, SoundServer, missing  # noqa: E402
from omni_ros.msg import AudioChunk, SpeechStatus  # noqa: E402
from omni_ros.nodes._support import LATCHED_QOS  # noqa: E402

TONE = Path(__file__).parents[1] / "programs" / "tone_tts.py"
PATIENCE_S = 30.0


@pytest.fixture(scope="session")
def has_sound_server() -> None:
    """Skip, with what to install, where there is no PulseAudio."""
    if missing():
        pytest.skip(missing())


@pytest.fixture(scope="module")
def sound_server(has_sound_server, tmp_path_factory):
    """A sound server for the tests of one file; processes started meanwhile find it."""
    server = SoundServer(tmp_path_factory.mktemp("sound"))
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULSE_SERVER", server.variables["PULSE_SERVER"])
        yield server
    server.stop()


@pytest.fixture(scope="module")
def microphone(sound_server):
    microphone = Microphone(sound_server)
    yield microphone
    microphone.close()


class Talk:
    """A goal that was sent: its feedback, and what became of it.

    rclpy's client loses an answer that comes before the asking thread has noted the question, so all
    is asked on the executor's thread.
    """

    def __init__(self, client: ActionClient, graph: Any, tools: Any, **fields: Any) -> None:
        self._tools, self._graph = tools, graph
        self.sent = time.monotonic()
        self.feedback: list = []
        goal = Speak.Goal(**fields)
        self.handle = self._ask(lambda: client.send_goal_async(
            goal, feedback_callback=lambda m: self.feedback.append(m.feedback)), f"{fields}")
        self._result = None
        if self.handle.accepted:
            self._result = self._on_executor(self.handle.get_result_async)

    def _on_executor(self, call: Any) -> Any:
        task = self._graph._executor.create_task(call)
        return self._tools.eventually(lambda: task.done() and task.result(), "the executor")

    def _ask(self, call: Any, what: str) -> Any:
        answer = self._on_executor(call)
        return self._tools.eventually(lambda: answer.done() and answer.result(),
                                      f"an answer to {what}")

    @property
    def done(self) -> bool:
        return self._result.done()

    def cancel(self) -> None:
        self._ask(self.handle.cancel_goal_async, "a cancel")

    def ask_again(self) -> int:
        """Ask the server for the result once more and return the state that it gives: 0 is unknown."""
        return self._ask(lambda: self.handle.get_result_async(), "a result").status

    def end(self, timeout_s: float = PATIENCE_S) -> tuple[str, Speak.Result]:
        """Wait for the end; ("succeeded", "canceled" or "aborted", result)."""
        self._tools.eventually(self._result.done, "the end of a goal", timeout_s)
        answer = self._result.result()
        return {4: "succeeded", 5: "canceled", 6: "aborted"}[answer.status], answer.result


class Speech:
    """The speech node of a graph, seen from outside."""

    def __init__(self, graph: Any, tools: Any) -> None:
        self.graph, self._tools = graph, tools
        self.chunks = graph.record(AudioChunk, "audio_chunk", 64)
        self.status = graph.record(SpeechStatus, "speech_status", LATCHED_QOS)
        self.is_speaking = graph.record(Bool, "is_speaking", LATCHED_QOS)
        self._client = ActionClient(graph.node, Speak, "speak")
        self.process: Any = None

    def start(self, executable: Any = TONE, **parameters: Any) -> Speech:
        self.process = self.graph.start(executable, name="tts", **parameters)
        self.graph.bring_up("tts")
        assert self._client.wait_for_server(PATIENCE_S)
        self._say = self.graph.publisher(String, "say")
        return self

    def goal(self, text: str, **fields: Any) -> Talk:
        return Talk(self._client, self.graph, self._tools, text=text, **fields)

    def say(self, text: str) -> None:
        self._say.publish(String(data=text))

    def stop(self) -> str:
        from std_srvs.srv import Trigger

        return self.graph.call(Trigger, "tts/stop").message

    def until(self, condition: Any, what: str) -> SpeechStatus:
        """Wait for a status that fits."""
        return self._tools.eventually(
            lambda: self.status.last and condition(self.status.last) and self.status.last, what)

    def idle(self) -> SpeechStatus:
        return self.until(lambda status: status.state == SpeechStatus.STATE_IDLE, "an idle node")

    def pieces(self, utterance: str) -> list:
        """Wait for the last chunk of an utterance and return them all; of several of that name, the last's."""
        def whole():
            found = [m for m in self.chunks.messages if m.utterance_id == utterance]
            firsts = [index for index, m in enumerate(found) if m.sequence == 0]
            return found and found[-1].last and found[firsts[-1] if firsts else 0:]
        return self._tools.eventually(whole, f"the last chunk of {utterance}")


@pytest.fixture(scope="module")
def speech(module_graph, tools):
    """Not started: the file says with what."""
    return Speech(module_graph, tools)


@pytest.fixture
def own_speech(graph, tools):
    return Speech(graph, tools)


@pytest.fixture(scope="module")
def talk_tools():
    """The parts, for files that need more than one of a kind."""
    from types import SimpleNamespace

    return SimpleNamespace(SoundServer=SoundServer, Microphone=Microphone, HEARD_HZ=HEARD_HZ)


def assert_gap_free(pieces: list) -> None:
    """Chunks are numbered without a hole and each begins where the one before ended."""
    assert [piece.sequence for piece in pieces] == list(range(len(pieces)))
    ends = np.cumsum([len(piece.samples) for piece in pieces]).tolist()
    assert [piece.first_sample for piece in pieces] == [0, *ends[:-1]]
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]


@pytest.fixture(scope="session")
def gap_free():
    return assert_gap_free
