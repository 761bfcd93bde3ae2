# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a bundle of a SmolVLA says that is its own."""

from __future__ import annotations

from typing import Any

from omni_ros.bundles import layout
from omni_ros.policy.prefix import END_MARKS, START_MARKS, PrefixLayout
from omni_ros.policy.rope import ROPE_BASE

from ..smolvla.load import build, build_stage, load_checkpoint
from .policy import PolicyExport


class SmolVLAExport(PolicyExport):
    """A SmolVLA checkpoint, one stage's weights at a time."""

    pad = ("pad_token", "<|im_end|>")
    load_checkpoint = staticmethod(load_checkpoint)
    build_stage = staticmethod(build_stage)
    build = staticmethod(build)

    def sections(self) -> dict[str, Any]:
        config = self.checkpoint.config
        return {
            **super().sections(),
            "family": "smolvla",
            "image": layout.Image(
                height=config.image_height, width=config.image_width, resize="pad",
                pad_value=-1.0, low=-1.0, high=1.0, placement="end", clamp=False,
            ),
        }

    def prefix(self) -> tuple[layout.Prefix, int]:
        checkpoint, config = self.checkpoint, self.checkpoint.config
        marks = (START_MARKS, END_MARKS) if config.special_tokens else (0, 0)
        tokens = PrefixLayout(
            checkpoint.slots, config.image_tokens, config.language, config.special_tokens
        )
        prefix = layout.Prefix(checkpoint.slots, *marks, rope_base=ROPE_BASE)
        return prefix, tokens.length
