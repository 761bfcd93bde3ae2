# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A bundle of the family "qwen3_tts", opened: its programs and tables as the parts of a voice."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.programs import ProgramError, get_threads, set_threads
from omni_ros.requirements import require

from .errors import TalkerError
from .frames import CodeRules
from .options import QwenOptions
from .predictor import CodePredictor
from .prompt import PromptIds, Prompts, Table
from .sampling import Draw
from .talker import ProgramTalker, Talker
from .talker_llama import LlamaTalker
from .vocoder import Codebooks, StatefulVocoder, WindowVocoder

_log = logging.getLogger(__name__)


@dataclass
class Parts:
    """What a voice is made of."""

    name: str
    sample_rate: int
    groups: int
    languages: tuple[str, ...]
    speakers: tuple[str, ...]
    talker: Talker
    predictor: CodePredictor
    prompts: Prompts
    codec: Table
    rules: CodeRules
    vocoder: StatefulVocoder | WindowVocoder
    vocoder_sizes: tuple[int, ...]
    encode: Callable[[str], list[tuple[int, int]]]

    def close(self) -> None:
        """Free all programs."""
        for part in (self.talker, self.predictor, self.vocoder):
            part.close()


def open_parts(
    folder: Path, options: QwenOptions, threads: int, cpus: Sequence[int] | None
) -> Parts:
    """Open a bundle.

    :raises BundleError: it is damaged, or of another family.
    :param threads: of the pool, see omni_ros.speech.voice.open_voice.
    :raises ProgramError: the pool has another number of threads, and programs that hold it.
    :raises TalkerError: it has no such GGUF file, or llama.cpp does not take it.
    """
    from omni_ros.bundles import open_bundle
    from omni_ros.bundles.qwen3_tts import open_tables

    count = threads or len(cpus if cpus is not None else os.sched_getaffinity(0))
    try:
        set_threads(count)
    except ProgramError:
        # The pool is the process's, and another part of it has chosen.
        if threads:
            raise
        count = get_threads()
    bundle = open_bundle(folder)
    manifest = bundle.manifest
    speech, tables = manifest.speech, open_tables(bundle)
    encode = _encoder(bundle.path(manifest.tokenizer.file))
    talker = _open_talker(bundle, options, count)
    shape = speech.predictor
    predictor = CodePredictor(
        bundle.load, tables.predictor, groups=shape.groups, layers=shape.layers,
        head_dim=shape.head_dim, rope_base=shape.rope_base)  # fmt: skip
    shape = speech.vocoder
    stateful = StatefulVocoder(
        bundle.load, tuple(shape.chunks), Codebooks(tables.codebooks), head_dim=shape.head_dim,
        window=shape.window, rope_base=shape.rope_base,
        frame_samples=manifest.sound.frame_samples)  # fmt: skip
    vocoder = (
        WindowVocoder(stateful, options.left_context_frames)
        if options.vocoder == "windows" else stateful
    )  # fmt: skip
    prompts = Prompts(_prompt_ids(speech, encode), tables.text, tables.codec,
                      _instruction(speech, encode, options.instruct))  # fmt: skip
    speakers = tuple(speech.speakers)
    return Parts(
        name=manifest.name,
        sample_rate=manifest.sound.sample_rate,
        groups=speech.predictor.groups,
        languages=prompts.ids.spoken_languages(),
        # Only a checkpoint with voices of its own needs one to be named.
        speakers=speakers if speech.kind == "custom_voice" else ("", *speakers),
        talker=talker,
        predictor=predictor,
        prompts=prompts,
        codec=tables.codec,
        rules=_code_rules(speech, options),
        vocoder=vocoder,
        vocoder_sizes=stateful.sizes,
        encode=encode,
    )


def _open_talker(bundle: Any, options: QwenOptions, threads: int) -> Talker:
    speech = bundle.manifest.speech
    shape = speech.talker
    if options.talker == "executorch":
        return ProgramTalker(
            bundle.load, tuple(shape.contexts), layers=shape.layers, head_dim=shape.head_dim,
            rope_base=shape.rope_base, prefill=shape.prefill > 1)  # fmt: skip
    known = dict(speech.gguf)
    which = options.gguf or next(iter(known), "")
    if which not in known:
        raise TalkerError(
            f"{bundle.root}: has no GGUF file {which!r}; it has: {', '.join(known) or 'none'}. "
            "Export it with one (omni export --gguf), or run its talker with executorch"
        )
    return LlamaTalker(
        bundle.path(known[which]), width=shape.width, codes=shape.codes,
        limit=min(max(shape.contexts), shape.limit), threads=threads, exact_cache=which in ("f32", "f16"))  # fmt: skip


def _code_rules(speech: Any, options: QwenOptions) -> CodeRules:
    draws = speech.sampling
    return CodeRules(
        codebook=speech.vocoder.codes,
        end=speech.codec_ids.eos,
        vocabulary=speech.talker.codes,
        talker=_draw(draws.temperature, draws.top_k, draws.top_p, draws.repetition_penalty),
        predictor=_draw(draws.sub_temperature, draws.sub_top_k, draws.sub_top_p, 1.0),
        min_frames=draws.min_tokens,
        max_frames=options.max_frames or draws.max_tokens,
    )


def _draw(temperature: float, top_k: int, top_p: float, penalty: float) -> Draw:
    if temperature == 0:
        return Draw(greedy=True, repetition_penalty=penalty)
    return Draw(False, temperature, top_k, top_p, penalty)


def _instruction(
    speech: Any, encode: Callable[[str], list[tuple[int, int]]], words: str
) -> tuple[int, ...]:
    """Return the turn of a user that comes before all else, as the reference writes it."""
    if not words:
        return ()
    said = [id for id, _ in encode(f"user\n{words}")]
    return (speech.text_ids.im_start, *said, speech.text_ids.im_end, *(id for id, _ in encode("\n")))


def _prompt_ids(speech: Any, encode: Callable[[str], list[tuple[int, int]]]) -> PromptIds:
    text, codec = speech.text_ids, speech.codec_ids
    return PromptIds(
        role=(text.im_start, text.assistant, *(id for id, _ in encode("\n"))),
        tts_pad=text.tts_pad,
        tts_bos=text.tts_bos,
        tts_eos=text.tts_eos,
        think=codec.think,
        nothink=codec.nothink,
        think_bos=codec.think_bos,
        think_eos=codec.think_eos,
        codec_pad=codec.pad,
        codec_bos=codec.bos,
        languages={name.lower(): id for name, id in speech.languages.items()},
        speakers={name.lower(): id for name, id in speech.speakers.items()},
        dialects={name.lower(): dialect for name, dialect in speech.dialects.items()},
    )


def _encoder(file: Path) -> Callable[[str], list[tuple[int, int]]]:
    tokenizer = require("tokenizers", "to turn text into tokens").Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # What someone says is text, even where it looks like a control token.
    tokenizer.encode_special_tokens = True

    def encode(text: str) -> list[tuple[int, int]]:
        encoded = tokenizer.encode(text, add_special_tokens=False)
        return [(id, end) for id, (_, end) in zip(encoded.ids, encoded.offsets, strict=True)]

    return encode
