# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A sound server of the tests' own, whose sound is recorded, and the speech node before it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
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
from omni_ros.msg import AudioChunk, SpeechStatus  # noqa: E402
from omni_ros.nodes._support import LATCHED_QOS  # noqa: E402

TONE = Path(__file__).parents[1] / "programs" / "tone_tts.py"
#: Recordings, Hz.
HEARD_HZ = 44100
#: A sample that is not silence.
LOUD = 0.01
PATIENCE_S = 30.0
PACKAGES = "pulseaudio pulseaudio-utils libasound2-plugins"


class SoundServer:
    """PulseAudio with one sink that nobody hears but its monitor. Not that of the user's session."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.socket = folder / "sound"
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(self._folder), "HOME": str(self._folder)}
        self._process = subprocess.Popen(
            ["pulseaudio", "--daemonize=no", "--exit-idle-time=-1", "-n",
             f"--load=module-native-protocol-unix socket={self.socket} auth-anonymous=1",
             "--load=module-null-sink sink_name=robot rate=48000 channels=2"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if subprocess.run(["pactl", "info"], env={**environment, **self.variables},
                              capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.05)
        pytest.fail("pulseaudio does not start")

    @property
    def variables(self) -> dict[str, str]:
        return {"PULSE_SERVER": f"unix:{self.socket}"}

    def stop(self) -> None:
        """End it, as a card that is pulled out."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()
            self._process = None
            self.socket.unlink(missing_ok=True)

    def hang(self) -> None:
        """Let it take no more sound, and answer nobody."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)


class Microphone:
    """What is to be heard, with the time that each sample came."""

    def __init__(self, server: SoundServer) -> None:
        self._process = subprocess.Popen(
            ["parec", "-d", "robot.monitor", "--format=s16le", f"--rate={HEARD_HZ}", "--channels=1",
             "--latency-msec=5"],
            env={**os.environ, **server.variables}, stdout=subprocess.PIPE)
        self._heard: list[tuple[float, np.ndarray]] = []
        threading.Thread(target=self._listen, daemon=True).start()
        deadline = time.monotonic() + PATIENCE_S
        while not self._heard and time.monotonic() < deadline:
            time.sleep(0.01)

    def _listen(self) -> None:
        rest = b""
        while data := os.read(self._process.stdout.fileno(), 1 << 16):
            now = time.monotonic()
            data = rest + data
            whole = len(data) // 2 * 2
            rest = data[whole:]
            self._heard.append((now, np.frombuffer(data[:whole], "<i2") / 32768.0))

    def since(self, moment: float) -> np.ndarray:
        """All samples that came since a moment."""
        pieces = [samples for came, samples in list(self._heard) if came >= moment]
        return np.concatenate(pieces) if pieces else np.zeros(0)

    def sound(self, moment: float) -> np.ndarray:
        """What was heard since a moment, from the first sound to the last."""
        samples = self.since(moment)
        loud = np.flatnonzero(np.abs(samples) > LOUD)
        return samples[loud[0]:loud[-1] + 1] if len(loud) else np.zeros(0)

    def gaps_ms(self, moment: float) -> list[float]:
        """Silences of more than 5 ms in the sound since a moment."""
        loud = np.flatnonzero(np.abs(self.sound(moment)) > LOUD)
        steps = np.diff(loud) / HEARD_HZ * 1e3
        return [round(float(step), 1) for step in steps if step > 5.0]

    def quiet(self, seconds: float) -> bool:
        """Whether nothing was heard in the last seconds."""
        return not np.any(np.abs(self.since(time.monotonic() - seconds)) > LOUD)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


@pytest.fixture(scope="session")
def has_sound_server() -> None:
    """Skip, with what to install, where there is no PulseAudio."""
    if not all(map(shutil.which, ("pulseaudio", "parec", "pactl"))):
        pytest.skip(f"no sound server to play to. Type: apt-get install -y {PACKAGES}")


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
        """Wait for the last chunk of an utterance and return them all."""
        def whole():
            found = [m for m in self.chunks.messages if m.utterance_id == utterance]
            return found and found[-1].last and found
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
