# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A Qwen3-TTS bundle against what the reference made: codes, hidden states, prompts, samples.

A reference set holds case*.npz; see tests/data/oracles/README.md for what is in them. It was made
greedily, without a penalty for repetition, and without a speaker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.parity.rows import SAME, Row, compare
from omni_ros.speech.qwen3.feed import TextFeed
from omni_ros.speech.qwen3.frames import FrameMaker, Span
from omni_ros.speech.qwen3.options import QwenOptions
from omni_ros.speech.qwen3.parts import Parts, open_parts

FAMILY = "qwen3_tts"
LANGUAGE = "english"
#: Name of a mode in the set, and whether the whole text is in its prompt.
MODES = {"stream": False, "nonstream": True}
#: What a set's case has at least.
NEEDED = ("text_ids", "vocoder_codes", "vocoder_pcm")


def is_reference(folder: Path) -> bool:
    """Whether a folder holds a reference set of this family."""
    return any(folder.glob("case*.npz"))


def measure(bundle: Path, folder: Path, threads: int) -> dict[str, Any]:
    """Return bundle, recipes, who recorded, and the rows.

    :raises ValueError: no reference, or a bundle that is none of a Qwen3-TTS.
    """
    from omni_ros.bundles import BundleError, read_manifest

    manifest = read_manifest(bundle)
    if manifest.family != FAMILY:
        raise BundleError(f"{bundle} is of the family {manifest.family}; the reference is of a "
                          f"{FAMILY}")
    parts = open_parts(bundle, QwenOptions(), threads, None)
    try:
        rows = [row for path in sorted(folder.glob("case*.npz"))
                for row in case_rows(parts, path)]
    finally:
        parts.close()
    return {
        "bundle": manifest.name, "rows": rows, "recorded_by": "QwenLM/Qwen3-TTS",
        "recipes": {name: entry.recipe for name, entry in manifest.programs.items()},
    }


def case_rows(parts: Parts, path: Path) -> list[Row]:
    """Return the rows of one case."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            case = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    missing = [name for name in NEEDED if name not in case]
    if missing:
        raise ValueError(f"{path}: has no {', '.join(missing)}; expected a case of a Qwen3-TTS set")
    rows = []
    for mode, whole in MODES.items():
        if f"codes_{mode}" not in case:
            continue
        wanted = case[f"codes_{mode}"]
        prompt, codes, hidden = spoken(parts, case["text_ids"], whole, len(wanted))
        name = f"{path.stem} {mode}"
        rows += [
            compare(f"{name}: prompt", prompt, case[f"prompt_embeds_{mode}"], SAME),
            compare(f"{name}: codes", codes, wanted, 0.0),
            compare(f"{name}: hidden", hidden, case[f"hidden_{mode}"], SAME),
        ]
    codes = case["vocoder_codes"].T.astype(np.int64)
    for title, sizes in chunkings(len(codes)).items():
        rows.append(compare(f"{path.stem}: samples, {title}", voiced(parts, codes, sizes),
                            case["vocoder_pcm"], SAME))
    return rows


def spoken(
    parts: Parts, ids: np.ndarray, whole: bool, frames: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return prompt, codes and hidden states of greedy speech."""
    draw = dataclasses.replace(parts.rules.talker, repetition_penalty=1.0)
    rules = dataclasses.replace(parts.rules, talker=draw)
    talker = Recorder(parts.talker, parts.rules.codebook)
    maker = FrameMaker(talker, parts.predictor, parts.prompts, parts.codec, rules)
    feed = TextFeed("x" * len(ids), lambda _: [(int(id), at + 1) for at, id in enumerate(ids)],
                    span_tokens=len(ids) + 1)  # fmt: skip
    feed.begin_span()
    say = maker.say(feed, Span(0), language=LANGUAGE, speaker="", greedy=True, whole=whole)
    said = [frame.codes for frame in islice(say, frames)]
    say.close()
    return talker.fed[0], np.stack(said), np.stack(talker.hidden[:len(said)])


class Recorder:
    """A talker that keeps what it was given and what it answered.

    :ivar best: the likeliest of the first `codes` ids, by call.
    """

    def __init__(self, talker: Any, codes: int) -> None:
        self._talker, self._codes = talker, codes
        self.best: list[int] = []
        self.fed: list[np.ndarray] = []
        self.hidden: list[np.ndarray] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._talker, name)

    def feed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As Talker.feed."""
        self.fed.append(np.array(rows))
        hidden, logits = self._talker.feed(rows)
        self.hidden.append(hidden.copy())
        self.best.append(int(logits[:self._codes].argmax()))
        return hidden, logits


def chunkings(frames: int) -> dict[str, Iterator[int]]:
    """Return ways to cut an utterance into chunks, by name."""
    random = np.random.default_rng(8).integers(1, 30, frames)
    return {
        "1 then 25": chain([1], repeat(25)), "all 4": repeat(4), "all 1": repeat(1),
        "7, 1, 40": chain([7, 1], repeat(40)), "random chunks": iter(random.tolist()),
    }


def voiced(parts: Parts, codes: np.ndarray, sizes: Iterator[int]) -> np.ndarray:
    """Return the samples of codes [frames, groups] in chunks of these sizes."""
    parts.vocoder.start()
    made, start = [], 0
    while start < len(codes):
        size = next(sizes)
        made.append(parts.vocoder.decode(codes[start:start + size]))
        start += size
    return np.concatenate(made)
