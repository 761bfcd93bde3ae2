# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a Qwen3-TTS bundle that hold programs: which methods each has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..common.layers import MASKED
from ..qwen3_tts.config import Layers
from ..qwen3_tts.generate import window_mask
from ..qwen3_tts.layers import rope
from ..qwen3_tts.load import QwenCheckpoint, build_predictor, build_talker, build_vocoder
from ..qwen3_tts.talker import (
    PredictorFirst, PredictorHead, PredictorStep, TalkerPrefill, TalkerStep,
)
from .lower import quantise
from .methods import Method

#: Files by part; talker.pte and so on.
PARTS = ("talker", "predictor", "heads", "vocoder")
#: Ways to store the weights of each part. "conv8": convolutions in 8 bits, with fixed ranges.
RECIPES = {
    "talker": ("fp32", "int8", "int4"), "predictor": ("fp32", "int8", "int4"),
    "heads": ("fp32", "int8"), "vocoder": ("fp32", "int8", "conv8"),
}
#: Positions of a cache that golden vectors fill; the rest is masked.
_FILLED = 8


@dataclass(frozen=True)
class Shape:
    """Sizes that an export chooses: see omni_ros.bundles.qwen3_tts."""

    contexts: tuple[int, ...] = (256, 512)
    prefill: int = 16
    chunks: tuple[int, ...] = (1, 4)


def program_names(part: str, shape: Shape, groups: int) -> list[str]:
    """Return the names of a part's programs, which are those of its methods."""
    if part == "talker":
        kinds = ("step", "prefill") if shape.prefill > 1 else ("step",)
        return [f"talker_{kind}_{size}" for size in shape.contexts for kind in kinds]
    if part == "predictor":
        return ["predictor_first", "predictor_step"]
    if part == "heads":
        return [f"predictor_head_{group}" for group in range(groups - 1)]
    return [f"vocoder_{n}" for n in shape.chunks]


def build(part: str, checkpoint: QwenCheckpoint, shape: Shape) -> dict[str, Method]:
    """Return a part's methods, with weights in float32."""
    if part == "talker":
        return talker_methods(checkpoint, shape)
    if part in ("predictor", "heads"):
        return predictor_methods(checkpoint, part)
    return vocoder_methods(checkpoint, shape)


def talker_methods(checkpoint: QwenCheckpoint, shape: Shape) -> dict[str, Method]:
    talker, sizes = build_talker(checkpoint), checkpoint.config.talker.stack
    made = {}
    for context in shape.contexts:
        for kind, n in (("step", 1), ("prefill", shape.prefill)):
            if kind == "prefill" and n == 1:
                continue
            module = TalkerStep(talker) if n == 1 else TalkerPrefill(talker, n)
            examples, golden = (
                (*row_inputs(n, sizes.width, sizes, generator),
                 *cache_inputs(sizes, context, generator))
                for generator in (seeded(0), seeded(1))
            )
            made[f"talker_{kind}_{context}"] = Method(
                module.eval(), examples, golden, ("x", "cos", "sin", *cache_names(sizes)),
                ("hidden", "logits", "keys_new", "values_new"),
            )
    return made


def predictor_methods(checkpoint: QwenCheckpoint, part: str) -> dict[str, Method]:
    predictor, config = build_predictor(checkpoint), checkpoint.config.predictor
    sizes, given = config.stack, checkpoint.config.talker.stack.width
    if part == "heads":
        return {
            f"predictor_head_{group}": Method(
                PredictorHead(head).eval(), (noise(seeded(group), 1, sizes.width),),
                (noise(seeded(100 + group), 1, sizes.width),), ("hidden",), ("logits",),
            )
            for group, head in enumerate(predictor.heads)
        }
    rows = [row_inputs(2, given, sizes, seeded(seed)) for seed in (0, 1)]
    steps = [
        (*row_inputs(1, given, sizes, seeded(seed)), *cache_inputs(sizes, config.groups,
                                                                  seeded(seed)))
        for seed in (2, 3)
    ]
    outputs = ("hidden", "keys_new", "values_new")
    return {
        "predictor_first": Method(PredictorFirst(predictor).eval(), *rows, ("x", "cos", "sin"),
                                  outputs),
        "predictor_step": Method(PredictorStep(predictor).eval(), *steps,
                                 ("x", "cos", "sin", *cache_names(sizes)), outputs),
    }


def vocoder_methods(checkpoint: QwenCheckpoint, shape: Shape) -> dict[str, Method]:
    vocoder, config = build_vocoder(checkpoint), checkpoint.config.vocoder
    states = state_names(config.stack.layers, len(vocoder.tails))

    def inputs(n: int, seed: int) -> tuple[torch.Tensor, ...]:
        generator, position = seeded(seed), 20
        cos, sin = rope(torch.arange(position, position + n), config.stack.head_dim,
                        config.stack.rope_base)
        mask = window_mask(n, position, config.window)
        values = vocoder.zero_states()
        for value in values:
            # The last few places only: golden files stay small.
            end = value[:, -_FILLED:] if value.shape[0] > 1 else value
            end.copy_(noise(generator, *end.shape))
        return (noise(generator, n, 2 * config.codebook_dim), cos, sin, mask, *values)

    return {
        f"vocoder_{n}": Method(
            vocoder, inputs(n, 0), inputs(n, 1), ("features", "cos", "sin", "mask", *states),
            ("pcm", *(f"new_{name}" for name in states)),
        )
        for n in shape.chunks
    }


def quantised(methods: Mapping[str, Method], recipe: str) -> dict[str, Method]:
    """Return methods whose modules hold their weights as a recipe says; the given ones are changed.

    The heads of a talker in int4 stay at 8 bits: they decide, and are a hundredth of the work.
    """
    if recipe == "fp32":
        return dict(methods)
    shared = nn.ModuleList(method.module for method in methods.values())
    if recipe == "int4":
        quantise(shared, lambda name: name.endswith(".head"), "int4")
        quantise(shared, lambda name: not name.endswith(".head"), "int8")
    else:
        quantise(shared, lambda name: False)
    return dict(methods)


def row_inputs(
    n: int, width: int, sizes: Layers, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Rows, cosines and sines as if _FILLED positions were there before."""
    cos, sin = rope(torch.arange(_FILLED, _FILLED + n), sizes.head_dim, sizes.rope_base)
    return noise(generator, n, width), cos, sin


def cache_inputs(
    sizes: Layers, length: int, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """A mask, and keys and values of a few positions."""
    filled = min(_FILLED, length)
    mask = torch.full((1, length), MASKED)
    mask[0, :filled] = 0.0
    caches = []
    for _ in range(2 * sizes.layers):
        cache = torch.zeros(sizes.kv_heads, length, sizes.head_dim)
        cache[:, :filled] = noise(generator, sizes.kv_heads, filled, sizes.head_dim)
        caches.append(cache)
    return (mask, *caches)


def cache_names(sizes: Layers) -> tuple[str, ...]:
    pairs = ((f"keys_{layer}", f"values_{layer}") for layer in range(sizes.layers))
    return ("mask", *(name for pair in pairs for name in pair))


def state_names(layers: int, tails: int) -> tuple[str, ...]:
    pairs = ((f"keys_{layer}", f"values_{layer}") for layer in range(layers))
    return (*(name for pair in pairs for name in pair), *(f"tail_{i}" for i in range(tails)))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator)


def check_recipes(recipes: Mapping[str, str]) -> None:
    """Refuse a recipe that a part does not have."""
    for part, recipe in recipes.items():
        if recipe not in RECIPES[part]:
            raise ValueError(
                f"{part}: recipe is {recipe!r}: expected one of {', '.join(RECIPES[part])}"
            )


def plain_options(recipes: Mapping[str, str], shape: Shape, gguf: Sequence[str]) -> dict[str, Any]:
    """Return what the manifest says about the choices."""
    return {
        **{f"{part}_recipe": recipe for part, recipe in recipes.items()},
        "contexts": ",".join(map(str, shape.contexts)), "prefill": shape.prefill,
        "chunks": ",".join(map(str, shape.chunks)), "gguf": ",".join(gguf) or None,
    }
