# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a recogniser understands what the voice says: word error rates of two lists."""

from __future__ import annotations

import re
import tempfile
import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.cli.bench_speech_sentences import PLAIN, WRITTEN

#: Seeds: whether a word is understood depends on what is drawn.
SEEDS = (0, 1, 2)


def lists(normalise: Callable[[str], str]) -> dict[str, list[tuple[str, str]]]:
    """Return texts with the words that are to be heard, by list."""
    return {"plain": [(text, plain(text)) for text in PLAIN], "written": list(WRITTEN)}


def plain(text: str) -> str:
    """Return a text's words in lower case, without marks."""
    return " ".join(re.sub(r"[^\w\s']", " ", text.lower()).split())


def heard(text: str, normalise: Callable[[str], str]) -> str:
    """Return what a recogniser wrote, in words: it writes figures, and so do we here."""
    words = plain(normalise(text)).replace("o'clock", "")
    # Two spellings of the same sounds.
    for one, other in (("mr", "mister"), ("mrs", "missus"), ("misses", "missus"), ("okay", "ok")):
        words = re.sub(rf"\b{one}\b", other, words)
    return " ".join(re.sub(r"\bpm\b", "p m", words).split())


def errors(wanted: Sequence[str], found: Sequence[str]) -> int:
    """Return how many words have to be changed, added or left out to make one of the other."""
    row = list(range(len(found) + 1))
    for i, word in enumerate(wanted, 1):
        before, row = row, [i]
        for j, other in enumerate(found, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (word != other)))
    return row[-1]


def save(path: Path, samples: np.ndarray, rate: int) -> None:
    """Write a WAV file of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def measure(
    say: Callable[[str, int], tuple[np.ndarray, int]], ask: Callable[[str], str],
    normalise: Callable[[str], str], progress: Callable[[str], None],
) -> dict[str, Any]:
    """Return word error rates and what was misheard.

    :param say: samples and rate of a text with a seed. :param ask: what a WAV file says.
    """
    document: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="omni_speech_") as folder:
        path = Path(folder) / "said.wav"
        for name, entries in lists(normalise).items():
            count, misheard = 0, []
            wrong = dict.fromkeys(SEEDS, 0)
            for text, words in entries:
                wanted = words.split()
                count += len(wanted)
                for seed in SEEDS:
                    samples, rate = say(text, seed)
                    save(path, samples, rate)
                    found = heard(ask(str(path)), normalise)
                    wrong[seed] += (mistakes := errors(wanted, found.split()))
                    if mistakes:
                        misheard.append(
                            {"text": text, "wanted": words, "heard": found, "seed": seed})
            document[name] = {
                "sentences": len(entries), "words": count, "seeds": list(SEEDS),
                "error_rates": [wrong[seed] / count for seed in SEEDS], "misheard": misheard,
            }
            progress(f"{name}: {', '.join(f'{wrong[s]} of {count}' for s in SEEDS)} words wrong")
    return document
