# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Where may the sound callback run? 10 s of a tone beside one busy Python thread, and what is heard of it.

    python -P docs/measurements/speech_graph.py

Each way plays through PortAudio to a sound server of its own and is recorded there: a callback and a
blocking write in the busy process, a callback in a process of its own, and the same with a real-time priority.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import sounddevice

from omni_ros.cli.null_sink import Microphone, SoundServer

RATE, SECONDS, BLOCK = 44100, 10, 441
#: Numbers that one call adds up; nothing else gets the interpreter meanwhile.
HOLD = 4_000_000
WAYS = ("callback", "write", "process", "process, SCHED_RR 1")


def tone() -> np.ndarray:
    at = np.arange(RATE * SECONDS)
    return (0.3 * np.sin(2 * np.pi * 441 * at / RATE)).astype(np.float32)


def by_callback(latency: float, priority: int = 0) -> int:
    """Play; return the blocks that came too late."""
    samples, done, at, late = tone(), threading.Event(), 0, 0

    def fill(out, frames, times, status):
        nonlocal at, late
        if at == 0 and priority:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
        late += bool(status.output_underflow) and not done.is_set()
        block = np.frombuffer(out, np.float32)
        piece = samples[at:at + frames]
        block[:len(piece)], block[len(piece):] = piece, 0.0
        at += frames
        if at >= len(samples):
            done.set()

    with sounddevice.RawOutputStream(samplerate=RATE, channels=1, dtype="float32",
                                     latency=latency, callback=fill):
        done.wait(60)
        time.sleep(0.3)
    return late


def by_writing(latency: float) -> int:
    samples, late = tone(), 0
    with sounddevice.RawOutputStream(samplerate=RATE, channels=1, dtype="float32",
                                     latency=latency) as stream:
        for begin in range(0, len(samples), BLOCK):
            late += stream.write(samples[begin:begin + BLOCK].tobytes())
        time.sleep(0.3)
    return late


def in_a_process(latency: float, priority: int) -> int:
    done = subprocess.run([sys.executable, "-P", __file__, "child", str(latency), str(priority)],
                          stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)


def burn(stop: threading.Event) -> None:
    """Hold the interpreter, for some 100 ms at a time, as sorting or parsing something large does."""
    while not stop.is_set():
        sum(range(HOLD))


def main() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # ALSA writes a line for each late block
    with tempfile.TemporaryDirectory() as folder:
        server = SoundServer(Path(folder))
        server.start()
        os.environ.update(server.variables)
        subprocess.run([sys.executable, "-P", __file__, "table"], check=False)
        server.stop()


def table() -> None:
    """In a process that begins after the sound server: PortAudio looks for devices only once."""
    server = SoundServer(Path(os.environ["PULSE_SERVER"].removeprefix("unix:")).parent)
    microphone, stop = Microphone(server), threading.Event()
    threading.Thread(target=burn, args=(stop,), daemon=True).start()
    print("| way | buffer | late blocks | gaps heard | longest |")
    print("|---|---|---|---|---|")
    for latency in (0.06, 0.2):
        for way in WAYS:
            began = time.monotonic()
            late = (by_callback(latency) if way == "callback" else
                    by_writing(latency) if way == "write" else
                    in_a_process(latency, int("RR" in way)))
            time.sleep(0.5)
            gaps = microphone.gaps_ms(began)
            print(f"| {way} | {1e3 * latency:.0f} ms | {late} | {len(gaps)}, {sum(gaps):.0f} ms | "
                  f"{max(gaps, default=0):.0f} ms |", flush=True)
    stop.set()
    microphone.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        print(by_callback(float(sys.argv[2]), int(sys.argv[3])))
    elif sys.argv[1:2] == ["table"]:
        table()
    else:
        main()
