# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the host hands to the programs beside images, state and noise (numpy only).

The prefix is one row a token, in this order and of fixed length:

    per image slot: [2 start marks] image tokens [1 end mark]; then the prompt; then the state

Marks exist if the checkpoint uses them. A slot is PRESENT (everything counts), EMPTY (a camera that
is missing but was announced to the network: marks count, image tokens do not) or UNUSED (nothing
counts). Present slots come first, as in the reference: with marks, order moves positions.
A prompt shorter than its place, an empty slot or one slot fewer is `valid` being 0, never another
shape. Positions count valid tokens only, so the network's answer does not depend on what is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..common.flow import rope_tables

PRESENT, EMPTY, UNUSED = "present", "empty", "unused"
START_MARKS, END_MARKS = 2, 1


@dataclass(frozen=True)
class PrefixLayout:
    """Where each token of the prefix lies."""

    slots: int
    image_tokens: int
    language: int
    special_tokens: bool

    @property
    def slot_length(self) -> int:
        marks = START_MARKS + END_MARKS if self.special_tokens else 0
        return self.image_tokens + marks

    @property
    def length(self) -> int:
        return self.slots * self.slot_length + self.language + 1

    def valid(self, slots: Sequence[str], token_mask: np.ndarray) -> np.ndarray:
        """Return float32 [length]: 1 for tokens that count, 0 for padding.

        slots: one of PRESENT, EMPTY, UNUSED each. token_mask: bool [language], True for tokens.
        """
        if len(slots) != self.slots:
            raise ValueError(f"{len(slots)} image slots given: expected {self.slots}")
        if token_mask.shape != (self.language,):
            raise ValueError(f"token mask of shape {token_mask.shape}: expected ({self.language},)")
        parts = []
        for slot in slots:
            if slot not in (PRESENT, EMPTY, UNUSED):
                raise ValueError(f"image slot {slot!r}: expected {PRESENT}, {EMPTY} or {UNUSED}")
            marks = float(slot != UNUSED)
            image = np.full(self.image_tokens, float(slot == PRESENT))
            if self.special_tokens:
                parts += [np.full(START_MARKS, marks), image, np.full(END_MARKS, marks)]
            else:
                parts.append(image)
        parts += [token_mask.astype(np.float64), np.ones(1)]
        return np.concatenate(parts).astype(np.float32)


def prefix_rope(valid: np.ndarray, head_dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of the prefix, float32 [length, head_dim / 2]."""
    return rope_tables(np.cumsum(valid).astype(np.int64) - 1, head_dim)


def action_rope(valid: np.ndarray, chunk: int, head_dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of the actions, which follow the valid prefix: [chunk, head_dim / 2]."""
    return rope_tables(int(valid.sum()) + np.arange(chunk), head_dim)


def vision_positions(rows: int, columns: int, side: int, *, shifted: bool = False) -> np.ndarray:
    """Row of the position table for each patch, int64 [rows * columns], row by row.

    side: the table's own side. `shifted` repeats transformers 4.55 to 4.57 in float32, where a
    factor just below one moved every row and column but the first up by one; a checkpoint trained
    with it may want it.
    """

    def buckets(count: int) -> np.ndarray:
        index = np.arange(count, dtype=np.int64) * side
        if shifted:
            return np.maximum(-(-index // count) - 1, 0)  # the largest boundary strictly below
        return index // count

    return (buckets(rows)[:, None] * side + buckets(columns)[None, :]).reshape(-1)
