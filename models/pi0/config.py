# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of a π0 or π0.5, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..common.config import TextConfig, VisionConfig, check_rules, shared_rules


@dataclass(frozen=True)
class Pi0Config:
    """Everything that decides a shape or a number, named as this package names it.

    :param adaptive: π0.5: time comes in by the expert's norms and the state by the prompt. Without
        it, π0: time is mixed into the actions, and the state is the suffix's first token.
    """

    vision: VisionConfig
    text: TextConfig
    expert_width: int
    expert_mlp: int
    adaptive: bool
    chunk: int
    steps: int
    action: int
    state: int
    max_action: int
    max_state: int
    image_height: int
    image_width: int
    language: int  # tokens of the prompt, padding included
    min_period: float
    max_period: float
    n_action_steps: int

    @property
    def patches(self) -> tuple[int, int]:
        """Patches of an image, (rows, columns): one token each."""
        return self.image_height // self.vision.patch, self.image_width // self.vision.patch

    @property
    def image_tokens(self) -> int:
        rows, columns = self.patches
        return rows * columns

    @property
    def layers(self) -> int:
        return self.text.layers

    @property
    def suffix(self) -> int:
        """Tokens of the expert: the actions, in π0 with the state before them."""
        return self.chunk + (not self.adaptive)

    def check(self) -> None:
        """Raise ValueError for sizes that do not fit each other."""
        vision = self.vision
        rows, columns = self.patches
        rules = [
            (self.image_height == rows * vision.patch and self.image_width == columns * vision.patch,
             f"images of {self.image_height} x {self.image_width} do not divide into patches of "
             f"{vision.patch}; give image_resolution a multiple of it"),
            (rows == columns == vision.table_side,
             f"images of {self.image_height} x {self.image_width} have {rows} x {columns} patches, "
             f"the position table {vision.table_side} x {vision.table_side}: expected the same"),
        ]
        check_rules([*rules, *shared_rules(self)])
