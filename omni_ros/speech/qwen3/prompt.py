# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the talker is given before and beside its frames.

Every position is the sum of a text row and a codec row. The prompt has the role, then tags for
language and speaker, then the text: either all of it (`whole`), or its first token, the others
being added one a frame to the frames that the talker makes (`begin`), so that speech starts before
the text has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

AUTO = "auto"


class Table(Protocol):
    """Embedding rows by id, float32 [len(ids), width]."""

    def rows(self, ids: Sequence[int]) -> np.ndarray: ...


@dataclass(frozen=True)
class PromptIds:
    """The ids of a checkpoint's config that prompts are made of.

    :param role: text ids of the opening ``<|im_start|>assistant\\n``.
    :param languages: codec id by language. :param speakers: codec id by name.
    :param dialects: the dialect, by speaker; only of speakers that have one.
    """

    role: tuple[int, ...]
    tts_pad: int
    tts_bos: int
    tts_eos: int
    think: int
    nothink: int
    think_bos: int
    think_eos: int
    codec_pad: int
    codec_bos: int
    languages: Mapping[str, int]
    speakers: Mapping[str, int]
    dialects: Mapping[str, str]

    def spoken_languages(self) -> tuple[str, ...]:
        """Return what may be asked for: dialects follow from the speaker."""
        return (AUTO, *(name for name in self.languages if "dialect" not in name))


class Prompts:
    """Makes prompts of one checkpoint."""

    def __init__(self, ids: PromptIds, text: Table, codec: Table,
                 instruction: Sequence[int] = ()) -> None:
        """:param instruction: text ids that come before the role: how all of it is to be said."""
        self.ids, self._text, self._codec = ids, text, codec
        self._opening = (*instruction, *ids.role)
        rows = text.rows([ids.tts_pad, ids.tts_bos, ids.tts_eos])
        #: text rows beside a frame when the text has ended; float32 [width]
        self.pad, self._bos, self.end = rows
        self._codec_pad, self._codec_bos = codec.rows([ids.codec_pad, ids.codec_bos])

    def text_row(self, token: int) -> np.ndarray:
        """Return the row of one text token, float32 [width]."""
        return self._text.rows([token])[0]

    def begin(self, first: int, language: str, speaker: str) -> np.ndarray:
        """Return a prompt that has the text's first token only, float32 [positions, width]."""
        head = self._head(language, speaker)
        return np.concatenate([head, (self.text_row(first) + self._codec_bos)[None]])

    def whole(self, text: Sequence[int], language: str, speaker: str) -> np.ndarray:
        """Return a prompt with all of the text; beside its frames goes `pad`.

        :raises ValueError: no text.
        """
        if not len(text):
            raise ValueError("no text tokens; expected at least one")
        spoken = np.concatenate([self._text.rows(text), self.end[None]]) + self._codec_pad
        return np.concatenate([
            self._head(language, speaker), spoken, (self.pad + self._codec_bos)[None]])  # fmt: skip

    def head_length(self, language: str, speaker: str) -> int:
        """Return how many positions come before the text."""
        return len(self._opening) + len(self._tags(language, speaker)) + 1

    def _head(self, language: str, speaker: str) -> np.ndarray:
        tags = self._codec.rows([*self._tags(language, speaker), self.ids.codec_pad])
        beside = np.repeat(self.pad[None], len(tags), axis=0)
        beside[-1] = self._bos
        return np.concatenate([self._text.rows(self._opening), beside + tags])

    def _tags(self, language: str, speaker: str) -> list[int]:
        ids = self.ids
        language, speaker = language.lower(), speaker.lower()
        if speaker and speaker not in ids.speakers:
            raise ValueError(f"speaker {speaker!r}; expected one of {', '.join(ids.speakers)}")
        # A speaker of a dialect speaks it whenever Chinese may be meant.
        if speaker in ids.dialects and language in ("chinese", AUTO):
            language = ids.dialects[speaker]
        if language == AUTO:
            tags = [ids.nothink, ids.think_bos, ids.think_eos]
        elif language in ids.languages:
            tags = [ids.think, ids.think_bos, ids.languages[language], ids.think_eos]
        else:
            known = ", ".join(ids.spoken_languages())
            raise ValueError(f"language {language!r}; expected one of {known}")
        return [*tags, ids.speakers[speaker]] if speaker else tags
