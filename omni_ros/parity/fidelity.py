# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What each quantisation of a Qwen3-TTS bundle changes in what it says, against one that has none.

Fixed texts are said greedily. One part at a time is the bundle's, the others are those of the
unquantised one, then all that it speaks with together. Greedy speech feeds back what it chose, so
that after the first code that differs the two say different things, right or wrong. So each part is
also asked for its next codes given the past of the unquantised one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.parity.qwen3_tts import FAMILY, Recorder
from omni_ros.speech.qwen3.feed import TextFeed
from omni_ros.speech.qwen3.frames import FrameMaker, Span
from omni_ros.speech.qwen3.options import QwenOptions
from omni_ros.speech.qwen3.parts import Parts, open_parts
from omni_ros.speech.qwen3.sampling import Draw

TEXTS = (
    "The red block is on the left of the blue one.",
    "I could not find the cup you asked for.",
    "Battery at eighteen percent, going back to the dock.",
    "Please step back, the arm is about to move.",
    "Good morning. What shall I bring you?",
    "The door is locked.",
    "I will need about two minutes for that.",
    "There are seven boxes on the shelf and none on the floor.",
    "Stop! Something is in my way.",
    "Yes, I can do that, if you hand me the screwdriver first.",
    "The temperature in the kitchen is twenty one degrees.",
    "Done. The table is clean.",
)


@dataclass(frozen=True)
class Fidelity:
    """What a variant does to the texts.

    :param variant: what is the bundle's. :param texts: how many were said.
    :param until_differs: frames before the first code that differs, by text; all of them if none
        does. :param frames: said by the unquantised one, by text.
    :param equal: share of codes that are equal, of all frames that both said.
    :param same_past: share of codes that are equal, if the past is the unquantised one's: code 0
        for a talker, the others for a predictor, all for both.
    :param snr_db: of the samples, the unquantised ones being the signal; both by its vocoder, or
        for a vocoder of its codes. None: nothing differs.
    """

    variant: str
    texts: int
    until_differs: tuple[int, ...]
    frames: tuple[int, ...]
    equal: float
    same_past: float
    snr_db: float | None

    def data(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def measure(
    bundle: Path, against: Path, *, frames: int = 40, texts: Sequence[str] = TEXTS, threads: int = 1
) -> dict[str, Any]:
    """Return the document: a row for each quantisation.

    :param against: a bundle of the same checkpoint in fp32. :param frames: the most said of a text.
    :raises ValueError: bundles of other families or checkpoints, or nothing to compare.
    """
    ours, theirs = check(bundle, against)
    recipes = {name: entry.recipe for name, entry in ours.programs.items()}
    with_unquantised = open_parts(against, QwenOptions(), threads, None)
    quantised = open_parts(bundle, QwenOptions(), threads, None)
    rows = []
    try:
        past = [Past.of(with_unquantised, frames, text) for text in texts]
        plain = [one.codes for one in past]
        sounds = [sound(with_unquantised, codes) for codes in plain]
        talker = recipes[f"talker_step_{ours.speech.talker.contexts[0]}"]
        own_talker, own_predictor = (
            sum((agreeing(one, quantised) for one in past), Counter())
            for agreeing in (talker_agrees, predictor_agrees)
        )
        variants = [
            (f"talker {talker}", quantised, with_unquantised, own_talker),
            (f"predictor {recipes['predictor_step']}, heads {recipes['predictor_head_0']}",
             with_unquantised, quantised, own_predictor),
            ("both", quantised, quantised, own_talker + own_predictor),
        ]
        for name, first, second, agreed in variants:
            rows.append(row(name, plain, sounds, say(first, second, frames, texts),
                            with_unquantised, share(agreed)))
        for kind in ours.speech.gguf:
            options = QwenOptions(talker="llama.cpp", gguf=kind)
            llama = open_parts(bundle, options, threads, None)
            try:
                agreed = sum((talker_agrees(one, llama) for one in past), Counter())
                rows.append(row(f"talker {kind} (llama.cpp)", plain, sounds,
                                say(llama, with_unquantised, frames, texts), with_unquantised,
                                share(agreed)))
            finally:
                llama.close()
        vocoder = recipes[f"vocoder_{ours.speech.vocoder.chunks[0]}"]
        rows.append(vocoder_row(f"vocoder {vocoder}", plain, sounds, quantised))
    finally:
        quantised.close()
        with_unquantised.close()
    return {
        "parity": str(against), "bundle": ours.name, "against": theirs.name, "family": FAMILY,
        "frames": frames, "texts": len(texts), "threads": threads,
        "rows": [entry.data() for entry in rows], "passed": True,
    }


def check(bundle: Path, against: Path) -> tuple[Any, Any]:
    """Return both manifests. :raises ValueError: they are not to be compared."""
    from omni_ros.bundles import BundleError, read_manifest

    ours, theirs = read_manifest(bundle), read_manifest(against)
    for folder, manifest in ((bundle, ours), (against, theirs)):
        if manifest.family != FAMILY:
            raise BundleError(f"{folder} is of the family {manifest.family}; expected {FAMILY}")
    if ours.provenance.checkpoint_sha256 != theirs.provenance.checkpoint_sha256:
        raise BundleError(
            f"{bundle} and {against} were made of different checkpoints "
            f"({ours.provenance.checkpoint_sha256[:16]}... and "
            f"{theirs.provenance.checkpoint_sha256[:16]}...); expected the same"
        )
    changed = sorted({e.recipe for e in theirs.programs.values()} - {"fp32"})
    if changed:
        raise BundleError(f"{against} has programs in {', '.join(changed)}; expected all in fp32")
    return ours, theirs


@dataclass(frozen=True)
class Past:
    """How the unquantised voice said a text: what its talker was fed and answered, and the codes.

    :param fed: the prompt, then a row a frame. :param hidden: float32 [frames, width].
    :param best: the likeliest code 0 of each frame. :param codes: int64 [frames, groups].
    """

    fed: list[np.ndarray]
    hidden: list[np.ndarray]
    best: list[int]
    codes: np.ndarray

    @classmethod
    def of(cls, voice: Parts, frames: int, text: str) -> Past:
        """Say a text and keep all that."""
        talker = Recorder(voice.talker, voice.rules.codebook)
        (codes,) = say(replace(voice, talker=talker), voice, frames, [text])
        count = len(codes)
        return cls(talker.fed[:count], talker.hidden[:count], talker.best[:count], codes)


def talker_agrees(past: Past, voice: Parts) -> Counter[bool]:
    """Count the frames whose likeliest code 0 is the same."""
    voice.talker.start()
    found: Counter[bool] = Counter()
    for rows, best in zip(past.fed, past.best, strict=True):
        _, logits = voice.talker.feed(rows)
        found[int(logits[:voice.rules.codebook].argmax()) == best] += 1
    return found


def predictor_agrees(past: Past, voice: Parts) -> Counter[bool]:
    """Count the other codes that are the same, frame by frame."""
    rule, found = Draw(greedy=True), Counter[bool]()
    for hidden, codes in zip(past.hidden, past.codes, strict=True):
        code = int(codes[0])
        made = voice.predictor.frame(hidden, code, voice.codec.rows([code])[0], rule, None)
        same = int((made[1:] == codes[1:]).sum())
        found.update({True: same, False: len(codes) - 1 - same})
    return found


def share(counted: Counter[bool]) -> float:
    """Return the share that agreed."""
    return counted[True] / max(1, counted.total())


def say(
    talker: Parts, predictor: Parts, frames: int, texts: Sequence[str]
) -> Iterator[np.ndarray]:
    """Yield the codes of each text, int64 [frames, groups]."""
    maker = FrameMaker(talker.talker, predictor.predictor, talker.prompts, talker.codec,
                       talker.rules)
    language = talker.languages[0]
    speaker = talker.speakers[0] if talker.speakers else ""
    for text in texts:
        feed = TextFeed(text, talker.encode, span_tokens=10**6)
        feed.begin_span()
        said = maker.say(feed, Span(0), language=language, speaker=speaker, greedy=True)
        made = [frame.codes for frame in islice(said, frames)]
        said.close()
        yield np.stack(made) if made else np.empty((0, talker.groups), np.int64)


def row(
    name: str, plain: Sequence[np.ndarray], sounds: Sequence[np.ndarray],
    others: Iterator[np.ndarray], voice: Parts, same_past: float,
) -> Fidelity:
    """Return the row of a variant by the codes that it said."""
    until, equal, compared, noise, signal = [], 0, 0, 0.0, 0.0
    for wanted, heard, found in zip(plain, sounds, others, strict=True):
        both = min(len(wanted), len(found))
        same = wanted[:both] == found[:both]
        whole = same.all(axis=1)
        until.append(int(np.argmin(whole)) if not whole.all() else both)
        equal, compared = equal + int(same.sum()), compared + same.size
        samples = both * voice.vocoder.frame_samples
        made = sound(voice, found[:both]).astype(np.float64)
        clean = heard[:samples].astype(np.float64)
        noise, signal = noise + float(((made - clean) ** 2).sum()), signal + float((clean**2).sum())
    return Fidelity(name, len(plain), tuple(until), tuple(len(codes) for codes in plain),
                    equal / max(1, compared), same_past, decibels(signal, noise))


def vocoder_row(
    name: str, plain: Sequence[np.ndarray], sounds: Sequence[np.ndarray], quantised: Parts
) -> Fidelity:
    """Return the row of a vocoder: the same codes, voiced by it."""
    noise = signal = 0.0
    for codes, clean in zip(plain, sounds, strict=True):
        clean = clean.astype(np.float64)
        noise += float(((sound(quantised, codes).astype(np.float64) - clean) ** 2).sum())
        signal += float((clean**2).sum())
    lengths = tuple(len(codes) for codes in plain)
    return Fidelity(name, len(plain), lengths, lengths, 1.0, 1.0, decibels(signal, noise))


def sound(voice: Parts, codes: np.ndarray) -> np.ndarray:
    """Return the samples of codes [frames, groups]."""
    voice.vocoder.start()
    return voice.vocoder.decode(codes)


def decibels(signal: float, noise: float) -> float | None:
    """Return the ratio of two sums of squares in dB; None without noise."""
    return None if noise == 0.0 else float(10 * np.log10(max(signal, 1e-300) / noise))
