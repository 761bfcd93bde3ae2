# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From text to codec frames: the loop over talker and code predictor."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .errors import ContextFull
from .feed import TextFeed
from .predictor import CodePredictor
from .prompt import Prompts, Table
from .sampling import Draw, FrameCodes, random_source
from .talker import Talker

_log = logging.getLogger(__name__)

FRAMES_PER_SECOND = 12.5
#: A talker that says more for its text than this does not come to an end; slow speech is half of it.
_MOST_FRAMES, _MOST_FRAMES_PER_TOKEN = 40, 8


@dataclass(frozen=True)
class CodeRules:
    """What a checkpoint's codes are, and how they are drawn.

    :param codebook: codes of a frame's first book. :param end: the id that ends.
    :param vocabulary: logits of the talker.
    """

    codebook: int
    end: int
    vocabulary: int
    talker: Draw
    predictor: Draw
    min_frames: int = 2
    max_frames: int = 4096


@dataclass(frozen=True)
class Frame:
    """:param codes: int64 [groups], own memory. :param seconds: of talker and predictor."""

    codes: np.ndarray
    seconds: dict[str, float]


@dataclass
class Span:
    """What one context of the talker says, and how far it is.

    :param start: characters before it. :param tokens: given to the talker so far.
    :param text_end: characters up to the last token given.
    """

    start: int
    tokens: int = 0
    text_end: int = 0
    frames: int = 0
    text_ended: bool = False


class FrameMaker:
    """Makes one utterance's frames after another's; holds nothing from one to the next."""

    def __init__(self, talker: Talker, predictor: CodePredictor, prompts: Prompts, codec: Table,
                 rules: CodeRules) -> None:
        self.talker, self.predictor, self.prompts = talker, predictor, prompts
        self._codec, self.rules = codec, rules

    def say(
        self,
        feed: TextFeed,
        span: Span,
        *,
        language: str,
        speaker: str,
        seed: int = 0,
        part: int = 0,
        greedy: bool = False,
        whole: bool = False,
    ) -> Iterator[Frame]:
        """Say the span that `feed` has begun. Closing the iterator between frames is clean.

        :param part: which span of the utterance: each draws from numbers of its own.
        :param whole: all its text goes into the prompt.
        """
        rules, talker = self.rules, self.talker
        # Both draw from one source, in turn, as the reference does.
        source = None if greedy else random_source(seed, part)
        first = FrameCodes(
            _rule(rules.talker, greedy), codebook=rules.codebook, end=rules.end,
            vocabulary=rules.vocabulary, min_frames=rules.min_frames, source=source)  # fmt: skip
        others = _rule(rules.predictor, greedy)
        talker.start()
        before = time.perf_counter()
        prompt = self._prompt(feed, span, language, speaker, whole)
        waited = time.perf_counter()
        hidden, logits = talker.feed(prompt)
        spent = {"prompt": time.perf_counter() - waited, "text": waited - before}
        while (code := first.draw(logits)) is not None:
            started = time.perf_counter()
            codes = self.predictor.frame(hidden, code, self._codec.rows([code])[0], others, source)
            span.frames += 1
            spent["predictor"] = time.perf_counter() - started
            yield Frame(codes.copy(), spent)
            if self._too_long(span):
                return
            started = time.perf_counter()
            beside = self._beside(feed, span)
            waited = time.perf_counter()
            try:
                hidden, logits = talker.feed((self.predictor.total + beside)[None])
            except ContextFull:
                _log.warning(
                    "speech was cut after %.1f s: the talker has no more than %d positions",
                    span.frames / FRAMES_PER_SECOND, talker.limit)  # fmt: skip
                return
            spent = {"talker": time.perf_counter() - waited, "text": waited - started}

    def _prompt(
        self, feed: TextFeed, span: Span, language: str, speaker: str, whole: bool
    ) -> np.ndarray:
        tokens = []
        while (token := feed.next()) is not None:
            tokens.append(token.id)
            span.tokens, span.text_end = len(tokens), token.end
            if not whole:
                return self.prompts.begin(token.id, language, speaker)
        span.text_ended = True
        return self.prompts.whole(tokens, language, speaker)

    def _beside(self, feed: TextFeed, span: Span) -> np.ndarray:
        if span.text_ended:
            return self.prompts.pad
        token = feed.next()
        if token is None:
            span.text_ended = True
            return self.prompts.end
        span.tokens += 1
        span.text_end = token.end
        return self.prompts.text_row(token.id)

    def _too_long(self, span: Span) -> bool:
        most = self.rules.max_frames
        if span.text_ended:
            most = min(most, _MOST_FRAMES + _MOST_FRAMES_PER_TOKEN * span.tokens)
        if span.frames < most:
            return False
        _log.warning(
            "speech was cut after %.1f s: the talker did not end its %d text tokens",
            span.frames / FRAMES_PER_SECOND, span.tokens)  # fmt: skip
        return True


def _rule(rule: Draw, greedy: bool) -> Draw:
    if not greedy:
        return rule
    return Draw(greedy=True, repetition_penalty=rule.repetition_penalty)
