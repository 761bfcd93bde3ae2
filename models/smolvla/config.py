# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of a SmolVLA, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..common.config import TextConfig, VisionConfig, check_rules, shared_rules

__all__ = ["SmolVLAConfig", "TextConfig", "VisionConfig"]


@dataclass(frozen=True)
class SmolVLAConfig:
    """Everything that decides a shape or a number, named as this package names it."""

    vision: VisionConfig
    text: TextConfig
    shuffle: int  # the connector joins shuffle x shuffle neighbouring patches into one token
    expert_width: int
    expert_mlp: int
    self_attention: tuple[bool, ...]  # per layer: own keys too, or the prefix alone
    chunk: int
    steps: int
    action: int
    state: int
    max_action: int
    max_state: int
    image_height: int
    image_width: int
    language: int  # tokens of the prompt, padding included
    special_tokens: bool  # image tokens stand between marks
    min_period: float
    max_period: float
    n_action_steps: int

    @property
    def patches(self) -> tuple[int, int]:
        """Patches of an image, (rows, columns)."""
        return self.image_height // self.vision.patch, self.image_width // self.vision.patch

    @property
    def image_tokens(self) -> int:
        rows, columns = self.patches
        return (rows // self.shuffle) * (columns // self.shuffle)

    @property
    def layers(self) -> int:
        return self.text.layers

    @property
    def kv_width(self) -> int:
        return self.text.kv_width

    def check(self) -> None:
        """Raise ValueError for sizes that do not fit each other."""
        rows, columns = self.patches
        text, vision = self.text, self.vision
        rules = [
            (self.image_height % vision.patch == 0 and self.image_width % vision.patch == 0,
             f"images of {self.image_height} x {self.image_width} do not divide into patches of "
             f"{vision.patch}; give resize_imgs_with_padding a multiple of it"),
            (rows == columns,
             f"images of {self.image_height} x {self.image_width} are not square: the connector "
             "joins neighbours of a square grid only; give resize_imgs_with_padding equal sides"),
            (rows % self.shuffle == 0,
             f"{rows} patches a side do not divide by the connector's scale {self.shuffle}"),
            (len(self.self_attention) == text.layers,
             f"{len(self.self_attention)} expert layers for {text.layers} backbone layers: "
             "expected as many of one as of the other"),
        ]
        check_rules([*rules, *shared_rules(self)])
