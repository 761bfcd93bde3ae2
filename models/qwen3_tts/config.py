# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes and ids of a Qwen3-TTS checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS = ("base", "custom_voice", "voice_design")
CODEC_IDS = {
    "eos": "codec_eos_token_id", "think": "codec_think_id", "nothink": "codec_nothink_id",
    "think_bos": "codec_think_bos_id", "think_eos": "codec_think_eos_id", "pad": "codec_pad_id",
    "bos": "codec_bos_id",
}
TEXT_IDS = {
    "im_start": "im_start_token_id", "im_end": "im_end_token_id",
    "assistant": "assistant_token_id", "tts_pad": "tts_pad_token_id",
    "tts_bos": "tts_bos_token_id", "tts_eos": "tts_eos_token_id",
}
#: The ids of "assistant" in Qwen's vocabulary, where a config does not state it.
ASSISTANT = 77091


@dataclass(frozen=True)
class Layers:
    """A stack of Qwen3 decoder layers."""

    width: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    rope_base: float
    bias: bool


@dataclass(frozen=True)
class TalkerConfig:
    """What makes code 0 of each frame. `codes`: rows of its table and head."""

    stack: Layers
    codes: int
    text_rows: int
    text_width: int
    positions: int


@dataclass(frozen=True)
class PredictorConfig:
    """What makes the other `groups` - 1 codes of a frame."""

    stack: Layers
    codes: int
    groups: int


@dataclass(frozen=True)
class VocoderConfig:
    """The decoder of the 12 Hz tokenizer. `codebook_dim`: width of one codebook's row."""

    stack: Layers
    window: int
    codes: int
    groups: int
    codebook_dim: int
    projected: int
    latent: int
    channels: int
    rates: tuple[int, ...]
    ratios: tuple[int, ...]
    sample_rate: int
    frame_samples: int


@dataclass(frozen=True)
class QwenConfig:
    """All of a checkpoint.

    `languages`, `speakers`: ids by name; `dialects`: the language of a speaker who has another one
    than the text's.
    """

    kind: str
    talker: TalkerConfig
    predictor: PredictorConfig
    vocoder: VocoderConfig
    text_ids: Mapping[str, int]
    codec_ids: Mapping[str, int]
    languages: Mapping[str, int]
    speakers: Mapping[str, int] = field(default_factory=dict)
    dialects: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
