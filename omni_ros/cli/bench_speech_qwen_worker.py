# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One side of `omni bench speech` for a Qwen3-TTS bundle, in a process of its own.

    python -m omni_ros.cli.bench_speech_qwen_worker '{"side": "bundle", "bundle": ..., ...}'

As omni_ros.cli.policy_worker: a line of JSON when it is ready, then one for each line it reads.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.cli.policy_worker import idiomatic, resident, silent_output

#: Long enough for any round; the talker gets a token of it beside each frame.
TEXT = (
    "I have put the red block into the box, and the blue one next to it. The green block is out of "
    "my reach, so I will drive a little to the left before I try again. Tell me if you would rather "
    "have it somewhere else. "
) * 6

Run = Callable[[], dict[str, Any]]


class Player:
    """A listener that plays what it is given, from the first sample on, without a device."""

    def __init__(self, rate: int) -> None:
        self._rate, self._started = rate, time.perf_counter()
        self._until: float | None = None
        self.first_s = self.silent_s = 0.0

    def slack(self) -> float:
        """Return the seconds that are left to play."""
        return max(0.0, self._until - time.perf_counter()) if self._until is not None else 0.0

    def take(self, samples: int) -> None:
        now = time.perf_counter()
        if self._until is None:
            self.first_s, self._until = now - self._started, now
        elif now > self._until:
            self.silent_s += now - self._until
            self._until = now
        self._until += samples / self._rate


def bundle_side(options: dict[str, Any]) -> tuple[dict[str, Any], Run]:
    """A whole voice; a round says so many frames."""
    from omni_ros.speech.qwen3.voice import QwenVoice
    from omni_ros.speech.voice import Utterance

    voice = QwenVoice(Path(options["bundle"]), options["threads"], None, **options["options"])
    frame_s = voice.frame_samples / voice.sample_rate
    utterance = Utterance(deterministic=True)

    def run() -> dict[str, Any]:
        player = Player(voice.sample_rate)
        started = time.perf_counter()
        stages: dict[str, float] = {}
        frames = 0
        chunks = voice.start(TEXT, utterance, player.slack)
        for chunk in chunks:
            player.take(len(chunk.samples))
            frames += len(chunk.samples) // voice.frame_samples
            for name, seconds in chunk.timings.items():
                stages[name] = stages.get(name, 0.0) + seconds
            if frames >= options["frames"]:
                break
        chunks.close()
        seconds = time.perf_counter() - started
        prompt = stages.pop("prompt", 0.0)
        stages.pop("text", None)
        return {
            "seconds": seconds / frames, "rtf": seconds / (frames * frame_s), "frames": frames,
            "stages": {name: spent / frames for name, spent in stages.items()},
            "prompt": prompt, "first": player.first_s, "silent": player.silent_s,
            "resident": resident(),
        }

    return {"talker": voice._parts.talker.name}, run


def eager_side(options: dict[str, Any]) -> tuple[dict[str, Any], Run]:
    """The same networks in PyTorch, float32, with their caches, greedily."""
    import torch

    from omni_ros.models.qwen3_tts import generate, load

    torch.set_num_threads(options["threads"])
    idiomatic()
    checkpoint = load.load_checkpoint(Path(options["checkpoint"]))
    talker = load.build_talker(checkpoint)
    codec = load.codec_table(checkpoint).float()
    tables = load.predictor_table(checkpoint)
    predictor = generate.EagerPredictor(load.build_predictor(checkpoint), tables)
    vocoder = generate.EagerVocoder(load.build_vocoder(checkpoint), load.codebooks(checkpoint))
    config = checkpoint.config
    frame_s = config.vocoder.frame_samples / config.vocoder.sample_rate
    prompt = torch.randn(10, config.talker.stack.width, generator=torch.Generator().manual_seed(0))
    chunk, frames = options["chunk"], options["frames"]

    def run() -> dict[str, Any]:
        stages = dict.fromkeys(("talker", "predictor", "vocoder"), 0.0)
        clock = Clock(stages)
        started = time.perf_counter()
        cached = generate.EagerTalker(talker, 256)
        vocoder.reset()
        hidden, logits = cached(prompt)
        prompt_s, first = time.perf_counter() - started, 0.0
        waiting: list[list[int]] = []
        for frame in range(frames):
            with clock("predictor"):
                code = int(logits[: config.vocoder.codes].argmax())
                codes = [code, *predictor(hidden, codec[code])]
                row = codec[code] + sum(tables[group, each].float()
                                        for group, each in enumerate(codes[1:]))
            waiting.append(codes)
            if frame == 0 or len(waiting) == chunk:
                with clock("vocoder"):
                    vocoder(torch.tensor(waiting).T)
                waiting = []
                first = first or time.perf_counter() - started
            with clock("talker"):
                hidden, logits = cached(row[None])
        seconds = time.perf_counter() - started
        return {
            "seconds": seconds / frames, "rtf": seconds / frames / frame_s, "frames": frames,
            "stages": {name: spent / frames for name, spent in stages.items()},
            "prompt": prompt_s, "first": first, "resident": resident(),
        }

    return {"torch": torch.__version__}, run


class Clock:
    """Adds up what blocks of code take, by name."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds, self._name, self._started = seconds, "", 0.0

    def __call__(self, name: str) -> Clock:
        self._name = name
        return self

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        self._seconds[self._name] += time.perf_counter() - self._started


def mtmd_side(options: dict[str, Any]) -> tuple[dict[str, Any], Run]:
    """llama.cpp alone: its talker, and its own code generation; its vocoder cannot stream."""
    from omni_ros.cli.bench_speech_mtmd import CodeGenerator
    from omni_ros.speech.qwen3.talker_llama import LlamaTalker

    talker = LlamaTalker(
        options["gguf"], width=options["width"], codes=options["codes"], limit=256,
        threads=options["threads"])  # fmt: skip
    generator = CodeGenerator(Path(options["mmproj"]), talker, options["threads"])
    prompt = np.random.default_rng(0).standard_normal((10, options["width"])).astype(np.float32)

    def run() -> dict[str, Any]:
        stages = dict.fromkeys(("talker", "predictor"), 0.0)
        clock = Clock(stages)
        started = time.perf_counter()
        talker.start()
        hidden, logits = talker.feed(prompt)
        prompt_s = time.perf_counter() - started
        for _ in range(options["frames"]):
            with clock("predictor"):
                row = generator.frame(hidden, int(logits[: options["codebook"]].argmax()))
            with clock("talker"):
                hidden, logits = talker.feed(row[None])
        seconds, frames = time.perf_counter() - started, options["frames"]
        return {
            "seconds": seconds / frames, "rtf": None, "frames": frames,
            "stages": {name: spent / frames for name, spent in stages.items()},
            "prompt": prompt_s, "first": None, "resident": resident(),
        }

    return {}, run


def main() -> None:
    """Be the child."""
    options = json.loads(sys.argv[1])
    sides = {"bundle": bundle_side, "eager": eager_side, "mtmd": mtmd_side}
    with silent_output() as lines:
        try:
            facts, run = sides[options["kind"]](options)
            print(json.dumps({"ready": facts, "resident": resident()}), file=lines, flush=True)
            for _ in sys.stdin:
                print(json.dumps(run()), file=lines, flush=True)
        except (ValueError, RuntimeError, ImportError) as error:
            print(json.dumps({"error": " ".join(str(error).split())}), file=lines, flush=True)


if __name__ == "__main__":
    main()
