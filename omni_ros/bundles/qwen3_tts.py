# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""bundle.yaml of a Qwen3-TTS voice, what its parts must be to each other, and its tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from omni_ros.bundles.contents import open_table
from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.layout import FileEntry, Memory, ProgramEntry, Provenance, Tolerance
from omni_ros.bundles.qwen3_tts_sizes import check_programs
from omni_ros.bundles.schema import number, one_of, size

if TYPE_CHECKING:
    from omni_ros.bundles.bundle import Bundle

#: Rows of a table that are looked at together.
_ROWS = 4096
_MOST = 1 << 20


@dataclass(frozen=True)
class Sound:
    """What comes out. `frame_samples`: of one codec frame."""

    sample_rate: int = size(4000, 192000)
    frame_samples: int = size(1, 1 << 16)


@dataclass(frozen=True)
class TextTokenizer:
    """A tokenizer.json; the text's special tokens are in it."""

    file: str


@dataclass(frozen=True)
class Tables:
    """Float32 .npy files [rows, width], meant to be memory-mapped.

    `text` [rows, width]: a token as the talker takes it, the projection already done; `codec`
    [codes, width]: code 0; `predictor` [groups - 1, codes, width]: the other codes; `codebooks`
    [groups, codes, row]: what the vocoder takes. The last two have all their rows below each other.
    """

    text: str
    codec: str
    predictor: str
    codebooks: str
    text_rows: int = size(1, 1 << 24)


@dataclass(frozen=True)
class TalkerSizes:
    """What makes code 0. `contexts`: sizes of the cache there are programs for, smallest first;
    `prefill`: positions that one call of talker_prefill_N takes; `limit`: positions it was trained
    for.
    """

    width: int = size(1, _MOST)
    layers: int = size(1, 512)
    heads: int = size(1, 1024)
    kv_heads: int = size(1, 1024)
    head_dim: int = size(2, 1024)
    codes: int = size(1, _MOST)
    rope_base: float = number(1.0, 1e12)
    contexts: tuple[int, ...] = size(1, _MOST)
    prefill: int = size(1, 4096)
    limit: int = size(1, _MOST)


@dataclass(frozen=True)
class PredictorSizes:
    """What makes the other codes of a frame, of `groups` in all."""

    width: int = size(1, _MOST)
    layers: int = size(1, 512)
    heads: int = size(1, 1024)
    kv_heads: int = size(1, 1024)
    head_dim: int = size(2, 1024)
    codes: int = size(1, _MOST)
    groups: int = size(2, 64)
    rope_base: float = number(1.0, 1e12)


@dataclass(frozen=True)
class VocoderSizes:
    """What makes samples. `row`: of a codebook; `window`: frames that attention sees, the own one
    counted; `chunks`: frames that there are programs for; `tails`: channels of each tail, `lengths`
    how long it is.
    """

    codes: int = size(1, _MOST)
    row: int = size(1, _MOST)
    layers: int = size(1, 512)
    kv_heads: int = size(1, 1024)
    head_dim: int = size(2, 1024)
    window: int = size(2, 4096)
    rope_base: float = number(1.0, 1e12)
    chunks: tuple[int, ...] = size(1, 4096)
    tails: tuple[int, ...] = size(1, _MOST)
    lengths: tuple[int, ...] = size(1, _MOST)


@dataclass(frozen=True)
class TextIds:
    """Ids of the text's vocabulary that prompts are made of."""

    im_start: int = size()
    im_end: int = size()
    assistant: int = size()
    tts_pad: int = size()
    tts_bos: int = size()
    tts_eos: int = size()


@dataclass(frozen=True)
class CodecIds:
    """Ids of the talker's codes that are no sound."""

    eos: int = size()
    think: int = size()
    nothink: int = size()
    think_bos: int = size()
    think_eos: int = size()
    pad: int = size()
    bos: int = size()


@dataclass(frozen=True)
class Sampling:
    """How codes are drawn where nobody says otherwise; `sub_...`: of the code predictor."""

    top_k: int = size(0, _MOST)
    top_p: float = number(0.0, 1.0)
    temperature: float = number(0.0, 100.0)
    repetition_penalty: float = number(0.1, 10.0)
    sub_top_k: int = size(0, _MOST)
    sub_top_p: float = number(0.0, 1.0)
    sub_temperature: float = number(0.0, 100.0)
    min_tokens: int = size(0, _MOST)
    max_tokens: int = size(1, _MOST)


@dataclass(frozen=True)
class Speech:
    """The network. `languages`, `speakers`: ids by name; `dialects`: a speaker's language; `gguf`:
    files with the talker for llama.cpp, by the way its weights are stored.
    """

    kind: str = one_of("base", "custom_voice", "voice_design")
    talker: TalkerSizes
    predictor: PredictorSizes
    vocoder: VocoderSizes
    text_ids: TextIds
    codec_ids: CodecIds
    languages: dict[str, int]
    speakers: dict[str, int]
    dialects: dict[str, str]
    sampling: Sampling
    gguf: dict[str, str]


@dataclass(frozen=True)
class QwenManifest:
    """bundle.yaml of a Qwen3-TTS voice.

    Programs: talker_step_T, talker_prefill_T, predictor_first, predictor_step, predictor_head_G,
    vocoder_N. Those of one file are methods of it and share its weights.
    """

    family: str
    name: str
    sound: Sound
    tokenizer: TextTokenizer
    tables: Tables
    speech: Speech
    programs: dict[str, ProgramEntry]
    memory: Memory
    files: dict[str, FileEntry]
    golden: dict[str, str]
    tolerance: Tolerance
    provenance: Provenance


def named(manifest: QwenManifest) -> dict[str, str]:
    """Return the files that are named, by the place."""
    tables = ("text", "codec", "predictor", "codebooks")
    return {
        "tokenizer.file": manifest.tokenizer.file,
        **{f"tables.{name}": getattr(manifest.tables, name) for name in tables},
        **{f"speech.gguf.{name}": file for name, file in manifest.speech.gguf.items()},
    }


def check(manifest: QwenManifest) -> None:
    """Check ids, names and programs. :raises BundleError: two parts do not fit each other."""
    speech = manifest.speech
    for kind, ids, rows in (
        ("text_ids", vars(speech.text_ids), manifest.tables.text_rows),
        ("codec_ids", vars(speech.codec_ids), speech.talker.codes),
        ("languages", speech.languages, speech.talker.codes),
        ("speakers", speech.speakers, speech.talker.codes),
    ):
        for name, value in ids.items():
            if not 0 <= value < rows:
                raise BundleError(
                    f"speech.{kind}.{short(name)} is {value}, expected an id below {rows}"
                )
    if not speech.languages:
        raise BundleError("speech.languages is empty")
    for speaker, dialect in speech.dialects.items():
        if speaker not in speech.speakers or dialect not in speech.languages:
            raise BundleError(
                f"speech.dialects: {short(speaker)} speaks {short(dialect)}, expected one of "
                "speakers and one of languages"
            )
    for place, sizes in (("talker.contexts", speech.talker.contexts),
                         ("vocoder.chunks", speech.vocoder.chunks)):
        if not sizes or list(sizes) != sorted(set(sizes)):
            raise BundleError(f"speech.{place} is {list(sizes)}, expected sizes that rise")
    if speech.predictor.codes > speech.vocoder.codes:
        raise BundleError(f"speech.predictor.codes is {speech.predictor.codes}, the codebooks have "
                          f"{speech.vocoder.codes}")
    check_programs(manifest)


def contents(bundle: Bundle) -> None:
    """Look at the tables. :raises BundleError: they are not as the manifest says, or not finite."""
    tables = open_tables(bundle)
    for name in ("text", "codec"):
        _check_finite(bundle, getattr(bundle.manifest.tables, name), getattr(tables, name).array)
    for name in ("predictor", "codebooks"):
        table = getattr(tables, name)
        _check_finite(bundle, getattr(bundle.manifest.tables, name),
                      table.reshape(-1, table.shape[-1]))


@dataclass(frozen=True)
class RowTable:
    """Rows by id, of a mapped file."""

    array: np.ndarray

    def rows(self, ids: Sequence[int]) -> np.ndarray:
        """Return copies of rows, float32 [len(ids), width]."""
        return self.array[np.asarray(ids, np.int64)]


@dataclass(frozen=True)
class OpenTables:
    """The tables of a bundle, mapped; see :class:`Tables`."""

    text: RowTable
    codec: RowTable
    predictor: np.ndarray
    codebooks: np.ndarray


def open_tables(bundle: Bundle) -> OpenTables:
    """Map the tables of a bundle.

    :raises BundleError: a file is no table of the shape that the manifest says.
    """
    manifest: QwenManifest = bundle.manifest
    speech, tables = manifest.speech, manifest.tables
    width, groups = speech.talker.width, speech.predictor.groups

    def mapped(file: str, *shape: int) -> np.ndarray:
        rows = math.prod(shape[:-1])
        table = open_table(bundle.path(file), dtype="float32", rows=rows, width=shape[-1])
        return table.reshape(shape)

    return OpenTables(
        RowTable(mapped(tables.text, tables.text_rows, width)),
        RowTable(mapped(tables.codec, speech.talker.codes, width)),
        mapped(tables.predictor, groups - 1, speech.predictor.codes, width),
        mapped(tables.codebooks, groups, speech.vocoder.codes, speech.vocoder.row),
    )


def _check_finite(bundle: Bundle, file: str, rows: np.ndarray) -> None:
    for start in range(0, len(rows), _ROWS):
        bad = ~np.isfinite(rows[start:start + _ROWS]).all(axis=1)
        if bad.any():
            raise BundleError(
                f"{bundle.path(file)}: row {start + int(np.flatnonzero(bad)[0])} holds values that "
                "are not finite; the file is damaged, or the checkpoint was: export again"
            )
