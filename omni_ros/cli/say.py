# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni say`: speak a text, write it to a file, or list the sound devices; no ROS needed."""

from __future__ import annotations

import argparse
import sys
import time
import wave
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.report import write
from omni_ros.requirements import require


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni say`."""
    add = parser.add_argument
    add("text", nargs="*", help="what to say; - for standard input, line by line as it comes")
    add("--voice", default="voice_joe", help="bundle of the voice: a path or a name (voice_joe)")
    add("--device", default="", help="sound device: part of its name, or an index")
    add("--rate", type=float, default=1.0, help="speed of speech (1.0)")
    add("--volume", type=float, default=1.0, help="0 to 1 (1.0)")
    add("--seed", type=int, default=0, help="of the voice's random draws (0)")
    add("--threads", type=int, default=1, help="that the voice computes with (1)")
    add("--out", metavar="FILE.wav", type=Path, help="write to a file instead of playing")
    add("--devices", action="store_true", help="list the sound devices and end")


def run(arguments: argparse.Namespace) -> int:
    """Speak; 1 if there was no sound device to play to."""
    if arguments.devices:
        return list_devices()
    if not arguments.text:
        raise UsageError("there is nothing to say: give a text, - for standard input, or --devices")
    if not 0.0 <= arguments.volume <= 1.0:
        raise UsageError(f"--volume {arguments.volume:g}: expected 0 to 1")
    from omni_ros.speech import Utterance, open_voice

    utterance = Utterance(rate=arguments.rate, seed=arguments.seed)
    text: Any = sys.stdin if arguments.text == ["-"] else " ".join(arguments.text)
    voice = open_voice(arguments.voice, arguments.threads)
    try:
        if arguments.out is not None:
            return to_file(arguments.out, voice, voice.start(text, utterance), arguments.volume)
        return play(voice, text, utterance, arguments)
    finally:
        voice.close()


def list_devices() -> int:
    """Print the sound devices that play; 1 if there are none."""
    from omni_ros.speech.playback_devices import outputs

    sounddevice = require("sounddevice", "to list the sound devices")
    default = sounddevice.default.device[1]
    found = outputs(list(sounddevice.query_devices()))
    for device in found:
        write(f"{'*' if device.index == default else ' '} {device}")
    write("* is the machine's own choice" if found else "there is no sound device that plays")
    return 0 if found else 1


def to_file(path: Path, voice: Any, chunks: Any, volume: float) -> int:
    """Write what is said to a WAV file.

    :raises UsageError: it cannot be written.
    """
    try:
        with path.open("wb") as raw, wave.open(raw, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(voice.sample_rate)
            for chunk in chunks:
                samples = (chunk.samples * volume).clip(-1.0, 1.0) * 32767.0
                file.writeframes(samples.round().astype("<i2").tobytes())
            seconds = file.getnframes() / voice.sample_rate
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; --out takes a file on a disk "
                         "with room for 44 kB a second") from error
    write(f"{seconds:.2f} s written to {path}")
    return 0


def play(voice: Any, text: Any, utterance: Any, arguments: argparse.Namespace) -> int:
    """Play what is said as it is made, and say how soon it was heard."""
    from omni_ros.speech.playback import Speaker, SpeakerSettings

    speaker = Speaker(SpeakerSettings(device=arguments.device))
    if not speaker.open():
        speaker.close()
        raise UsageError(f"{speaker.fault}; --devices lists them, --out FILE.wav needs none")
    try:
        began = time.monotonic_ns()
        track = speaker.begin(voice.sample_rate)
        for chunk in voice.start(text, utterance, track.slack_s):
            speaker.write(track, chunk.samples * arguments.volume)
        speaker.end(track)
        while not track.over:
            time.sleep(0.02)
        write(f"{track.written / track.rate:.2f} s said on {speaker.text}; first sample out after "
              f"{(track.first_ns - began) * 1e-6:.0f} ms, {track.dry} underruns"
              + (f"; lost: {track.lost}" if track.lost else ""))
        return 1 if track.lost else 0
    finally:
        speaker.close()
