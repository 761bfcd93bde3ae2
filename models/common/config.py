# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of the networks that policies are built of, as plain numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class VisionConfig:
    """A SigLIP-like tower over square patches."""

    width: int
    mlp: int
    layers: int
    heads: int
    patch: int
    table_side: int  # the position table covers table_side x table_side patches
    eps: float


@dataclass(frozen=True)
class TextConfig:
    """A Llama-like decoder of which only the first `layers` are used."""

    width: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    eps: float

    @property
    def kv_width(self) -> int:
        """Values of one token's keys."""
        return self.kv_heads * self.head_dim


def check_rules(rules: Iterable[tuple[bool, str]]) -> None:
    """Raise ValueError with the text of the first rule that does not hold."""
    for holds, text in rules:
        if not holds:
            raise ValueError(text)


def shared_rules(config) -> list[tuple[bool, str]]:
    """Return what must hold for the sizes of any policy: whether it does, and what to say if not."""
    text, vision = config.text, config.vision
    return [
        (text.heads % text.kv_heads == 0,
         f"{text.heads} query heads do not divide by {text.kv_heads} key heads"),
        (text.head_dim % 2 == 0, f"head width {text.head_dim} is odd: expected an even one"),
        (vision.width % vision.heads == 0,
         f"vision width {vision.width} does not divide by {vision.heads} heads"),
        (config.expert_width % 2 == 0,
         f"expert width {config.expert_width} is odd: time needs sine and cosine pairs"),
        (config.action <= config.max_action,
         f"actions of {config.action} values in max_action_dim {config.max_action}"),
        (config.state <= config.max_state,
         f"a state of {config.state} values in max_state_dim {config.max_state}"),
        (min(config.chunk, config.steps, config.language, config.action, config.state) > 0,
         f"chunk {config.chunk}, steps {config.steps}, prompt {config.language}, action "
         f"{config.action} and state {config.state}: expected each to be 1 or more"),
        (0 < config.min_period < config.max_period,
         f"periods {config.min_period} to {config.max_period}: expected 0 < min < max"),
    ]
