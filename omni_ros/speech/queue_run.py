# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The utterance being spoken, its pieces for the topic, and what is told of its goals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omni_ros.speech.playback_track import Track
from omni_ros.speech.queue import Job, Part, Result
from omni_ros.speech.voice import Voice


@dataclass(frozen=True)
class Piece:
    """A chunk as it goes to the topic: volume applied, numbered."""

    utterance: str
    sequence: int
    first_sample: int
    rate: int
    samples: np.ndarray  # float32 [n]
    last: bool  # with no samples: it was stopped, and what is left of it is not to be played


@dataclass(frozen=True)
class News:
    """How far a goal has got. `result` is None while it goes on."""

    key: Any
    result: Result | None
    text: str
    speaking: str
    characters: int
    audio_s: float
    first_s: float  # 0.0 until the first sample


@dataclass
class Run:
    """The utterance being spoken."""

    job: Job
    voice: Voice
    track: Track
    #: (sample that it ends before, characters spoken by then, clause) of each chunk.
    marks: list[tuple[int, int, str]] = field(default_factory=list)
    work_s: float = 0.0
    slack_s: float | None = None
    made: bool = False
    #: Samples of its chunks, and the number of its next piece.
    samples: int = 0
    sequence: int = 0

    def reached(self, position: float) -> tuple[int, str]:
        """Return the characters spoken and the clause being spoken."""
        characters, speaking = 0, ""
        for end, text_end, clause in self.marks:
            speaking = clause or speaking
            if position < end:
                break
            characters = text_end
        return characters, speaking

    def say(self, part: Part, result: Result | None, text: str) -> News:
        """Return what to tell of one of its goals."""
        position = self.track.position()
        characters, speaking = self.reached(position)
        if result is Result.SPOKEN:
            characters = part.end
        first_s = 0.0
        if self.track.first_ns:
            first_s = max(0.0, (self.track.first_ns - part.request.accepted_ns) * 1e-9)
        return News(part.request.key, result, text, speaking, part.share(characters),
                    position / self.track.rate, first_s)
