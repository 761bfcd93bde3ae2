# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What `omni export` offers for a Qwen3-TTS, beside the options of every export."""

from __future__ import annotations

import argparse
from typing import Any

from omni_ros.cli import UsageError

PARTS = ("talker", "predictor", "vocoder")


def add_voice_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    group = parser.add_argument_group(
        "Qwen3-TTS", "--recipe is that of talker and code predictor; the vocoder stays fp32 unless "
        "--vocoder-recipe says otherwise")  # fmt: skip
    add = group.add_argument
    add("--talker-recipe", choices=("fp32", "int8", "int4"))
    add("--predictor-recipe", choices=("fp32", "int8", "int4"))
    add("--vocoder-recipe", choices=("fp32", "int8", "conv8"),
        help="int8: its products; conv8: its convolutions, with ranges seen at export")  # fmt: skip
    add("--contexts", metavar="N,...",
        help="sizes of the talker's cache there are programs for: a step reads all of it, and "
        "prompt and frames (12.5 a second) must fit the largest (default 256,512)")  # fmt: skip
    add("--prefill", type=int, metavar="N",
        help="positions of a prompt that are taken at once; 1: one by one (default 16)")
    add("--chunks", metavar="N,...",
        help="frames that the vocoder takes at once; the first is 1 (default 1,4)")  # fmt: skip
    add("--gguf", metavar="KIND,...",
        help="the talker for llama.cpp, too: f32, f16, q8_0, q4_0, q4_k (default: none)")


def given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given."""
    names = (*(f"{part}_recipe" for part in PARTS), "contexts", "prefill", "chunks", "gguf")
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def refuse_voice_arguments(arguments: argparse.Namespace) -> None:
    """Refuse them for what is no Qwen3-TTS. :raises UsageError: with the first one given."""
    for name in given(arguments):
        raise UsageError(
            f"--{name.replace('_', '-')} is for a Qwen3-TTS, and {arguments.checkpoint} is none: "
            "leave it out"
        )


def export_qwen(arguments: argparse.Namespace, say: Any) -> Any:
    """Export a Qwen3-TTS. :raises UsageError: an option that it does not have, or no number."""
    for name in ("backbone", "base", "dataset", "stats", "cameras", "aloha", "relative",
                 "vision_heads"):  # fmt: skip
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} is for policies, and "
                             f"{arguments.checkpoint} is a voice: leave it out")
    from omni_ros.models.export.qwen3_tts import export_voice
    from omni_ros.models.export.qwen3_tts_parts import Shape

    options = given(arguments)
    sizes: dict[str, Any] = {
        name: numbers(options[name], name) for name in ("contexts", "chunks") if name in options
    }
    if "prefill" in options:
        sizes["prefill"] = options["prefill"]
    recipes = {part: options[f"{part}_recipe"] for part in PARTS if f"{part}_recipe" in options}
    return export_voice(
        arguments.checkpoint, arguments.out, recipe=arguments.recipe, recipes=recipes,
        shape=Shape(**sizes), gguf=words(options.get("gguf", "")), name=arguments.name,
        threads=arguments.threads, allow_portable=arguments.allow_portable, force=arguments.force,
        progress=say,
    )  # fmt: skip


def words(text: str) -> tuple[str, ...]:
    """Return what stands between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def numbers(text: str, name: str) -> tuple[int, ...]:
    """Return whole numbers from between commas."""
    try:
        return tuple(int(word) for word in words(text))
    except ValueError:
        raise UsageError(f"--{name} {text!r}: expected whole numbers with commas between") from None
