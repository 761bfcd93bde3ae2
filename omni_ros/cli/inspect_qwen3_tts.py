# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What `omni inspect` shows of a Qwen3-TTS voice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def network(manifest: Any) -> Iterable[tuple[str, str]]:
    """Yield what goes in and what comes out.

    :param manifest: an omni_ros.bundles.qwen3_tts.QwenManifest.
    """
    speech, sound = manifest.speech, manifest.sound
    talker, predictor, vocoder = speech.talker, speech.predictor, speech.vocoder
    rate = sound.sample_rate / sound.frame_samples
    yield "voice", f"{manifest.name} ({manifest.family}, {speech.kind.replace('_', ' ')})"
    yield "sound", (
        f"{sound.sample_rate} Hz in frames of {sound.frame_samples} samples, {rate:g} a second, "
        f"{predictor.groups} codes a frame"
    )
    yield "languages", ", ".join(speech.languages)
    yield "speakers", ", ".join(
        name + (f" ({speech.dialects[name]})" if name in speech.dialects else "")
        for name in speech.speakers
    ) or "none by name"
    yield "talker", (
        f"{talker.layers} layers of {talker.width}, {talker.kv_heads} x {talker.head_dim} keys and "
        f"values; caches of {_or(talker.contexts)} positions, prompts by {talker.prefill}"
    )
    yield "predictor", (
        f"{predictor.layers} layers of {predictor.width}, {predictor.groups - 1} heads of "
        f"{predictor.codes}"
    )
    yield "vocoder", (
        f"{vocoder.layers} layers over {vocoder.window} frames, {_or(vocoder.chunks)} frames at a "
        f"time, any chunks give the same samples"
    )
    draws = speech.sampling
    yield "sampling", (
        f"top-k {draws.top_k}, top-p {draws.top_p:g}, temperature {draws.temperature:g}, "
        f"repetition penalty {draws.repetition_penalty:g}; codes behind the first: "
        f"top-k {draws.sub_top_k}, top-p {draws.sub_top_p:g}, temperature {draws.sub_temperature:g}"
    )
    yield "llama.cpp", ", ".join(
        f"{kind} ({manifest.files[file].bytes / 1e6:.1f} MB)" for kind, file in speech.gguf.items()
    ) or "no GGUF file"


def _or(sizes: Iterable[int]) -> str:
    return " or ".join(map(str, sizes))
