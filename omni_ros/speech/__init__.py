# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Speech: text in as it comes, sound out as it is made.

    from omni_ros.speech import Utterance, open_voice

    voice = open_voice("voice_joe")
    for chunk in voice.start("I will pick up the red block.", Utterance()):
        speaker.write(chunk.samples)

A voice (`voice`) is what makes sound of text; there are several families of them and one interface.
`text` and `clauses` prepare what is to be said, `schedule` says how much to make at a time.
"""

from __future__ import annotations

from omni_ros.speech.voice import (
    SpeechChunk,
    SpeechError,
    SpeechRefused,
    Utterance,
    Voice,
    check_utterance,
    open_voice,
)

__all__ = [
    "SpeechChunk",
    "SpeechError",
    "SpeechRefused",
    "Utterance",
    "Voice",
    "check_utterance",
    "open_voice",
]
