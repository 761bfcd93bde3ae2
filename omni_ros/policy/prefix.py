# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A policy's prefix: which token lies where, which of them count, at which positions.

The prefix is one row a token, in this order and of fixed length:

    per image slot: [2 start marks] image tokens [1 end mark]; then the prompt; then the state

Only SmolVLA has the state here: π0 has it behind the prefix, and π0.5 in the prompt. Marks exist if the checkpoint uses them. A slot is PRESENT (everything counts), EMPTY (a camera that
is missing but was announced to the network: marks count, image tokens do not) or UNUSED (nothing
counts). Present slots come first, as in the reference: with marks, order moves positions.
A prompt shorter than its place, an empty slot or one slot fewer is `valid` being 0, never another
shape. Positions count valid tokens only, so the network's answer does not depend on what is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .rope import rope_tables

PRESENT, EMPTY, UNUSED = "present", "empty", "unused"
START_MARKS, END_MARKS = 2, 1


@dataclass(frozen=True)
class PrefixLayout:
    """Where each token of the prefix lies."""

    slots: int
    image_tokens: int
    language: int
    special_tokens: bool
    state: bool = True

    @property
    def slot_length(self) -> int:
        marks = START_MARKS + END_MARKS if self.special_tokens else 0
        return self.image_tokens + marks

    @property
    def length(self) -> int:
        return self.slots * self.slot_length + self.language + self.state

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
        parts += [token_mask.astype(np.float64), np.ones(int(self.state))]
        return np.concatenate(parts).astype(np.float32)


def slot_kinds(present: int, *, empty: int, slots: int) -> list[str]:
    """Return what each image slot is: present cameras, announced empty ones, the rest unused.

    present: cameras there are pictures of. empty: `empty_cameras` of the checkpoint; the reference
    puts that many behind the present ones whether or not cameras are missing.
    """
    if not 0 <= present <= slots - empty:
        raise ValueError(
            f"{present} cameras for {slots} image slots, {empty} of them for empty cameras: "
            f"expected at most {slots - empty}"
        )
    return [PRESENT] * present + [EMPTY] * empty + [UNUSED] * (slots - empty - present)


def prefix_positions(valid: np.ndarray) -> np.ndarray:
    """Return the position of each token, int64 [length]; masked ones share their predecessor's."""
    return np.cumsum(valid).astype(np.int64) - 1


def action_positions(valid: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of the tokens that follow the valid prefix: int64 [count]."""
    return int(valid.sum()) + np.arange(count)


def prefix_rope(
    valid: np.ndarray, head_dim: int, *, kind: str = "timescale"
) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of the prefix, float32 [length, head_dim / 2]."""
    return rope_tables(prefix_positions(valid), head_dim, kind=kind)


def action_rope(
    valid: np.ndarray, count: int, head_dim: int, *, kind: str = "timescale"
) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of the tokens that follow it, float32 [count, head_dim / 2]."""
    return rope_tables(action_positions(valid, count), head_dim, kind=kind)
