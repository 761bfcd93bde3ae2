# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A sound server of one's own, with one sink that nobody hears, and what is played to it.

For the bench and the tests: a real sound server, a real device for PortAudio, no sound card.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np

#: Recordings, Hz.
HEARD_HZ = 44100
#: A sample that is not silence.
LOUD = 0.01
PROGRAMS = ("pulseaudio", "parec", "pactl")
PACKAGES = "pulseaudio pulseaudio-utils libasound2-plugins"
PATIENCE_S = 30.0


def missing() -> str:
    """Return what to type where there is no PulseAudio, "" where there is."""
    if all(map(shutil.which, PROGRAMS)):
        return ""
    return f"no sound server to play to. Type: apt-get install -y {PACKAGES}"


class SoundServer:
    """PulseAudio with a sink `robot`; not that of the user's session."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "sound"
        self._process: subprocess.Popen | None = None
        #: Environment in which processes find it.
        self.variables = {"PULSE_SERVER": f"unix:{self._socket}"}

    def start(self) -> None:
        """
        :raises RuntimeError: it does not start.
        """
        environment = {**os.environ, **self.variables, "XDG_RUNTIME_DIR": str(self._folder),
                       "HOME": str(self._folder)}
        self._process = subprocess.Popen(
            ["pulseaudio", "--daemonize=no", "--exit-idle-time=-1", "-n",
             f"--load=module-native-protocol-unix socket={self._socket} auth-anonymous=1",
             "--load=module-null-sink sink_name=robot rate=48000 channels=2"],
            env={**environment, "PULSE_SERVER": ""}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if subprocess.run(["pactl", "info"], env=environment, capture_output=True,
                              check=False).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError(f"pulseaudio does not start within {PATIENCE_S:g} s")

    def stop(self) -> None:
        """End it, as a card that is pulled out."""
        if self._process is not None:
            self.go_on()
            self._process.kill()
            self._process.wait()
            self._process = None
            self._socket.unlink(missing_ok=True)

    def hang(self) -> None:
        """Let it take no more sound, and answer nobody."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it live again."""
        self._process.send_signal(signal.SIGCONT)


class Microphone:
    """What is played to the sink, with the time that it came (later than it was heard, if at all)."""

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
        """Return all samples that came since a moment (monotonic seconds)."""
        pieces = [samples for came, samples in list(self._heard) if came >= moment]
        return np.concatenate(pieces) if pieces else np.zeros(0)

    def sound(self, moment: float) -> np.ndarray:
        """Return what was heard since a moment, from the first sound to the last."""
        samples = self.since(moment)
        loud = np.flatnonzero(np.abs(samples) > LOUD)
        return samples[loud[0]:loud[-1] + 1] if len(loud) else np.zeros(0)

    def ends(self, moment: float) -> tuple[float, float] | None:
        """Return when the first and the last sound since a moment came; None if none did."""
        first = last = None
        for came, samples in list(self._heard):
            loud = np.flatnonzero(np.abs(samples) > LOUD) if came >= moment else ()
            if len(loud):
                begin = came - len(samples) / HEARD_HZ
                first = begin + loud[0] / HEARD_HZ if first is None else first
                last = begin + loud[-1] / HEARD_HZ
        return None if first is None else (first, last)

    def gaps_ms(self, moment: float) -> list[float]:
        """Return the silences of more than 5 ms in the sound since a moment."""
        loud = np.flatnonzero(np.abs(self.sound(moment)) > LOUD)
        steps = np.diff(loud) / HEARD_HZ * 1e3
        return [round(float(step), 1) for step in steps if step > 5.0]

    def quiet(self, seconds: float) -> bool:
        """Return whether nothing was heard in the last seconds."""
        return not np.any(np.abs(self.since(time.monotonic() - seconds)) > LOUD)

    def close(self) -> None:
        """End the recording."""
        self._process.terminate()
        self._process.wait()
