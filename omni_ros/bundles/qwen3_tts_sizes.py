# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which programs a Qwen3-TTS bundle has, and which tensors they take and give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omni_ros.bundles.errors import BundleError

if TYPE_CHECKING:
    from omni_ros.bundles.qwen3_tts import QwenManifest, Speech

Shapes = dict[str, tuple[int, ...]]


def check_programs(manifest: QwenManifest) -> None:
    """Compare a manifest's programs with its sizes. :raises BundleError: with both."""
    wanted = programs(manifest.speech, manifest.sound.frame_samples)
    if set(wanted) != set(manifest.programs):
        missing = sorted(set(wanted) - set(manifest.programs))
        more = sorted(set(manifest.programs) - set(wanted))
        raise BundleError(
            f"programs lacks {', '.join(missing) or 'none'} and has {', '.join(more) or 'none'} "
            "beyond those that speech needs"
        )
    for name, (inputs, outputs) in wanted.items():
        entry = manifest.programs[name]
        for kind, tensors, shapes in (("inputs", entry.inputs, inputs),
                                      ("outputs", entry.outputs, outputs)):
            found = {tensor.name: tensor.shape for tensor in tensors if tensor.dtype == "float32"}
            if list(found.items()) != list(shapes.items()):
                raise BundleError(f"programs.{name}.{kind} are {found}, by speech they have to be "
                                  f"{shapes}")


def programs(speech: Speech, frame_samples: int) -> dict[str, tuple[Shapes, Shapes]]:
    """Return inputs and outputs of every program, in order."""
    made: dict[str, tuple[Shapes, Shapes]] = {}
    talker, predictor, vocoder = speech.talker, speech.predictor, speech.vocoder
    for context in talker.contexts:
        sizes = {f"talker_step_{context}": 1}
        if talker.prefill > 1:
            sizes[f"talker_prefill_{context}"] = talker.prefill
        for name, n in sizes.items():
            inputs = {
                "x": (n, talker.width), "cos": (n, talker.head_dim // 2),
                "sin": (n, talker.head_dim // 2), "mask": (1, context),
                **cache(talker.layers, talker.kv_heads, context, talker.head_dim),
            }
            few = () if n == 1 else (n,)
            new = (talker.layers, talker.kv_heads, *few, talker.head_dim)
            made[name] = inputs, {
                "hidden": (n, talker.width), "logits": (n, talker.codes), "keys_new": new,
                "values_new": new,
            }
    half = predictor.head_dim // 2
    new = (predictor.layers, predictor.kv_heads, 2, predictor.head_dim)
    made["predictor_first"] = (
        {"x": (2, talker.width), "cos": (2, half), "sin": (2, half)},
        {"hidden": (1, predictor.width), "keys_new": new, "values_new": new},
    )
    new = (predictor.layers, predictor.kv_heads, predictor.head_dim)
    made["predictor_step"] = (
        {"x": (1, talker.width), "cos": (1, half), "sin": (1, half),
         "mask": (1, predictor.groups),
         **cache(predictor.layers, predictor.kv_heads, predictor.groups, predictor.head_dim)},
        {"hidden": (1, predictor.width), "keys_new": new, "values_new": new},
    )
    for group in range(predictor.groups - 1):
        made[f"predictor_head_{group}"] = (
            {"hidden": (1, predictor.width)}, {"logits": (1, predictor.codes)},
        )
    states = vocoder_states(speech)
    for n in vocoder.chunks:
        made[f"vocoder_{n}"] = (
            {"features": (n, 2 * vocoder.row), "cos": (n, vocoder.head_dim // 2),
             "sin": (n, vocoder.head_dim // 2), "mask": (n, vocoder.window - 1 + n), **states},
            {"pcm": (n * frame_samples,),
             **{f"new_{name}": shape for name, shape in states.items()}},
        )
    return made


def cache(layers: int, heads: int, length: int, head_dim: int) -> Shapes:
    """Return keys and values of all layers."""
    return {
        f"{kind}_{layer}": (heads, length, head_dim)
        for layer in range(layers) for kind in ("keys", "values")
    }


def vocoder_states(speech: Speech) -> Shapes:
    """Return what the vocoder remembers, in order."""
    vocoder = speech.vocoder
    tails = zip(vocoder.tails, vocoder.lengths, strict=True)
    return {
        **cache(vocoder.layers, vocoder.kv_heads, vocoder.window - 1, vocoder.head_dim),
        **{f"tail_{index}": (1, *tail) for index, tail in enumerate(tails)},
    }
