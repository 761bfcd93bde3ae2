# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From logits to a code, in the order of the reference's steps.

Repetition penalty, minimum length, suppressed ids, temperature, top-k, top-p, draw. As in the
reference the penalty looks at what this utterance has generated, not at the prompt, and greedy
takes the largest of what is left, temperature and cuts left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Draw:
    """How one kind of code is drawn.

    :param greedy: the largest; the four below are then without effect, but for the penalty.
    :param top_k: keep the k largest and what equals the k-th; 0: all.
    :param top_p: keep the smallest set with this probability, at least one; 1: all.
    :param repetition_penalty: a logit of an id that was drawn before is divided by it, or
        multiplied where it is negative.
    """

    greedy: bool = False
    temperature: float = 0.9
    top_k: int = 50
    top_p: float = 1.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        for name, value, good, wanted in (
            ("temperature", self.temperature, self.temperature > 0, "above 0; or greedy"),
            ("top_k", self.top_k, self.top_k >= 0, "0 or more"),
            ("top_p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("repetition_penalty", self.repetition_penalty, self.repetition_penalty > 0,
             "above 0"),
        ):  # fmt: skip
            if not good:
                raise ValueError(f"{name} is {value:g}; expected {wanted}")


def random_source(seed: int, part: int = 0) -> np.random.Generator:
    """Return the draws of one part of an utterance: a pure function of its arguments."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, part], np.uint64)))


def draw(logits: np.ndarray, rule: Draw, source: np.random.Generator | None) -> int:
    """Draw an index of `logits`, float32 [n].

    :param source: needed unless greedy; exactly one number is taken from it.
    :raises ValueError: nothing is left to draw from: all logits are -inf, or one is NaN.
    """
    best = int(logits.argmax())
    if not np.isfinite(logits[best]):
        raise ValueError(
            f"the largest of {logits.size} logits is {logits[best]}; expected a finite number: the "
            "program's weights or its inputs are broken"
        )
    if rule.greedy:
        return best
    if source is None:
        raise ValueError("a draw that is not greedy needs a random source")
    kept, scores = _largest(logits, rule.top_k)
    # In float64 from here on: the sums then do not depend on their order as far as a draw can see.
    weights = np.exp((scores.astype(np.float64) - float(logits[best])) / rule.temperature)
    if rule.top_p < 1.0:
        kept, weights = _nucleus(kept, weights, rule.top_p)
    heights = weights.cumsum()
    chosen = int(heights.searchsorted(source.random() * heights[-1], side="right"))
    return int(kept[min(chosen, len(kept) - 1)])


def _largest(logits: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    if not 0 < count < logits.size:
        return np.arange(logits.size), logits
    limit = np.partition(logits, logits.size - count)[logits.size - count]
    kept = np.flatnonzero(logits >= limit)
    return kept, logits[kept]


def _nucleus(kept: np.ndarray, weights: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(weights, kind="stable")
    below = weights[order].cumsum() / weights.sum()
    out = below <= 1.0 - share
    out[-1] = False
    stays = np.sort(order[~out])
    return kept[stays], weights[stays]


class FrameCodes:
    """Draws the first code of every frame: the one that can end the utterance.

    Only codes of the codebook and the end are ever drawn, the end not before `min_frames`.
    """

    def __init__(self, rule: Draw, *, codebook: int, end: int, vocabulary: int, min_frames: int,
                 source: np.random.Generator | None, first: int = 0) -> None:
        """:param codebook: codes that a frame's first may be, from `first`. :param end: the id
        that ends. :param vocabulary: logits a step has."""
        if not codebook <= end < vocabulary:
            raise ValueError(
                f"the end is id {end}; expected one behind the {codebook} codes, below "
                f"{vocabulary}: are these the ids of this checkpoint's config?"
            )
        self._rule, self._source = rule, source
        self._end, self._min_frames = end, min_frames
        self._suppressed = np.ones(vocabulary, bool)
        self._suppressed[first:codebook] = False
        self._suppressed[end] = False
        self._scores = np.empty(vocabulary, np.float32)
        self._seen = np.zeros(vocabulary, bool)
        self.count = 0

    def draw(self, logits: np.ndarray) -> int | None:
        """Return a code, or None for the end. :param logits: float32 [vocabulary]."""
        scores = self._scores
        np.copyto(scores, logits)
        penalty = self._rule.repetition_penalty
        if penalty != 1.0 and self.count:
            seen = np.flatnonzero(self._seen)
            old = scores[seen]
            scores[seen] = np.where(old < 0, old * np.float32(penalty), old / np.float32(penalty))
        scores[self._suppressed] = -np.inf
        if self.count < self._min_frames:
            scores[self._end] = -np.inf
        code = draw(scores, self._rule, self._source)
        self.count += 1
        self._seen[code] = True
        return None if code == self._end else code
