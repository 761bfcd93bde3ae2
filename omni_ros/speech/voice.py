# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What every voice is: text in pieces goes in, samples in chunks come out."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

#: Where the voice of each family of bundles is: module and class, `Class(bundle, threads, cpus)`.
FAMILIES: Mapping[str, tuple[str, str]] = {
    "piper": ("omni_ros.speech.piper", "PiperVoice"),
    "qwen3_tts": ("omni_ros.speech.qwen3", "QwenVoice"),
}
#: Seeds are as wide as those of the policies' noise.
MAX_SEED = (1 << 63) - 1


class SpeechError(RuntimeError):
    """A voice cannot go on: a part of it is missing or failed. The message says what to do."""


class SpeechRefused(ValueError):
    """A text that this voice cannot say, or not like this. The message says what to change."""


@dataclass(frozen=True)
class Utterance:
    """How a text is to be said.

    :param language: of `Voice.languages`; "" is the voice's own.
    :param speaker: of `Voice.speakers`; "" is the voice's own.
    :param rate: speed of speech, 1.0 is the voice's own; within `Voice.rates`.
    :param seed: of all random draws: the same text and seed give the same samples.
    :param deterministic: no random draws at all.
    """

    language: str = ""
    speaker: str = ""
    rate: float = 1.0
    seed: int = 0
    deterministic: bool = False


@dataclass(frozen=True)
class SpeechChunk:
    """A piece of an utterance, gap-free behind the piece before it.

    :param samples: float32 [n], mono, in -1..1. Its own memory: it is not written to again. May be
        empty in the last chunk only.
    :param first_sample: index of samples[0] within the utterance.
    :param text_end: how many characters of all text given so far are spoken once this chunk is
        over; never less than in the chunk before. The last chunk's is the number of all
        characters.
    :param speaking: the clause that these samples belong to, as it was given.
    :param timings: seconds that each stage took for this chunk, by name.
    :param last: no chunk follows.
    """

    samples: np.ndarray
    first_sample: int
    text_end: int
    speaking: str
    timings: Mapping[str, float] = field(default_factory=dict)
    last: bool = False


class Voice(Protocol):
    """A loaded voice. It says one utterance at a time; only `abort` may be called meanwhile.

    :ivar name: of the bundle. :ivar sample_rate: Hz. :ivar frame_samples: the samples of one frame:
        chunks are whole frames, but for the last of a clause.
    :ivar languages, speakers: what an Utterance may name; the first is the default.
    :ivar rates: the lowest and highest rate.
    """

    name: str
    sample_rate: int
    frame_samples: int
    languages: tuple[str, ...]
    speakers: tuple[str, ...]
    rates: tuple[float, float]

    def start(
        self,
        text: str | Iterable[str],
        utterance: Utterance = Utterance(),
        slack: Callable[[], float] | None = None,
    ) -> Iterator[SpeechChunk]:
        """Say a text. Samples are made as the iterator is asked for them, in the asking thread.

        :param text: all of it, or pieces as they come: the iterable may block until it has one,
            and may give "" for nothing new yet. What makes up a whole clause is said before the
            next piece is asked for.
        :param slack: how many seconds of sound the sink still has to play; asked before each chunk
            so that chunks are as large as they may be and no larger. None: not known, every chunk
            is taken to be needed at once.
        :raises SpeechRefused: at the call for the utterance, and for a text given whole; from the
            iterator for a piece, then after all that came before it was said.
        :raises SpeechError: a part of the voice failed, or it is saying another utterance.

        After an `abort` the iterator ends, without a chunk that is `last`. An iterator that is not
        wanted any more is to be closed (`close()`) or aborted and asked once more.
        """

    def abort(self) -> None:
        """End the running utterance, from any thread, within a frame's work or 50 ms.

        Without one it does nothing. The next `start` begins from a clean state. A `text` that
        blocks is the caller's to wake up.
        """

    def close(self) -> None:
        """Free memory and processes; abort what is running. May be called twice."""


def open_voice(
    bundle: str | Path,
    threads: int = 0,
    cpus: Sequence[int] | None = None,
    options: Mapping[str, object] | None = None,
) -> Voice:
    """Open the voice in a bundle, by its family.

    :param bundle: a folder, or the name of a bundle that set-up has made.
    :param threads: of the thread pool; 0 for as many as `cpus`, or as the process may use. The
        pool is the process's: the first to load a program decides.
    :param cpus: what the voice's threads and processes are confined to; None: leave it.
    :param options: what only voices of this family know, by name; see docs/speech.md.
    :raises ValueError: an option that this family does not have.
    :raises BundleError: no such bundle, damaged, or of a family that has no voice.
    :raises SpeechError, MissingDependency: something that it needs is missing; with what to type.
    """
    from omni_ros.bundles.errors import BundleError
    from omni_ros.bundles.manifest import read_manifest
    from omni_ros.bundles.named import bundle_folder

    folder = bundle_folder(str(bundle))
    family = read_manifest(folder).family
    if family not in FAMILIES:
        raise BundleError(
            f"{folder}: is a bundle of the family {family!r}, which has no voice; expected one of "
            f"{', '.join(FAMILIES)}"
        )
    module, name = FAMILIES[family]
    make = getattr(importlib.import_module(module), name)
    try:
        inspect.signature(make).bind(folder, threads, cpus, **(options or {}))
    except TypeError as error:
        raise ValueError(f"voices of the family {family!r}: {error}") from None
    voice: Voice = make(folder, threads, cpus, **(options or {}))
    return voice


def check_utterance(voice: Voice, utterance: Utterance) -> Utterance:
    """Return the utterance with language and speaker filled in.

    :raises SpeechRefused: the voice cannot do what it asks for.
    """
    language = _choice(voice, "language", utterance.language, voice.languages)
    speaker = _choice(voice, "speaker", utterance.speaker, voice.speakers)
    low, high = voice.rates
    if not math.isfinite(utterance.rate) or not low <= utterance.rate <= high:
        raise SpeechRefused(
            f"rate is {utterance.rate:g}; the voice {voice.name} speaks at {low:g} to {high:g} of "
            "its own speed"
        )
    if not 0 <= utterance.seed <= MAX_SEED:
        raise SpeechRefused(f"seed is {utterance.seed}; expected 0 to {MAX_SEED}")
    return Utterance(
        language, speaker, float(utterance.rate), int(utterance.seed), utterance.deterministic
    )


def _choice(voice: Voice, what: str, wanted: str, known: tuple[str, ...]) -> str:
    if not wanted:
        return known[0] if known else ""
    if wanted not in known:
        raise SpeechRefused(
            f"{what} is {wanted!r}; the voice {voice.name} has {', '.join(known) or 'only its own'}"
        )
    return wanted
