# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How a Qwen3-TTS voice is run; every field has a default that is meant to be right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

#: What a text may say for yes and no.
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

_CHOICES = {
    "talker": ("executorch", "llama.cpp"),
    "text": ("beside", "whole"),
    "vocoder": ("stateful", "windows"),
}

_LEAST = {"chunk_frames": 1, "first_chunk_frames": 0, "left_context_frames": 0, "max_frames": 0}


@dataclass(frozen=True)
class QwenOptions:
    """
    :param talker: "executorch" or "llama.cpp". ExecuTorch is the default because its threads sleep
        while they wait: it slows down where cores are shared, llama.cpp's stand still.
    :param gguf: which of the bundle's files llama.cpp loads; "" for the first there is.
    :param text: "beside" the frames, so that speech begins before the text has ended, or the
        "whole" of a sentence before its first frame.
    :param instruct: how to speak, in words, for checkpoints that were trained to listen to that.
    :param vocoder: "stateful": exact for any chunking; or "windows": vLLM-Omni's chunks and
        vLLM-Omni's samples.
    :param chunk_frames, first_chunk_frames, left_context_frames: of the windows.
    :param ramp: the windows' first chunks. :param adaptive: windows grow with the buffer.
    :param buffer_first: where the machine cannot keep up, make so much before the first sound that
        playback does not run dry.
    :param max_frames: the most of one context; 0: the checkpoint's own.
    """

    talker: str = "executorch"
    gguf: str = ""
    text: str = "beside"
    instruct: str = ""
    vocoder: str = "stateful"
    chunk_frames: int = 25
    first_chunk_frames: int = 1
    left_context_frames: int = 72
    ramp: tuple[int, ...] = ()
    adaptive: bool = False
    buffer_first: bool = False
    max_frames: int = 0

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} is {value!r}; expected one of {', '.join(known)}")
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least {least}")


def parse_options(given: Mapping[str, object]) -> QwenOptions:
    """Return options from names and values, where a value may be its text ("yes", "4,4,8").

    :raises ValueError: an unknown name, or a value that is none; with what is known.
    """
    known = {field.name: field for field in fields(QwenOptions)}
    made = {}
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"option {name!r}; expected one of {', '.join(known)}")
        made[name] = _parsed(name, value, known[name].default)
    return replace(QwenOptions(), **made)


def _parsed(name: str, value: object, default: object) -> object:
    if not isinstance(value, str) or isinstance(default, str):
        return value
    try:
        if isinstance(default, bool):
            return _WORDS[value.strip().lower()]
        if isinstance(default, int):
            return int(value)
        return tuple(int(part) for part in value.split(",") if part.strip())
    except (KeyError, ValueError):
        kind = {bool: "yes or no", int: "a whole number"}.get(type(default), "numbers, as in 4,4,8")
        raise ValueError(f"option {name} is {value!r}; expected {kind}") from None
