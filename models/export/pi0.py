# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a bundle of a π0 or π0.5 says that is its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omni_ros.bundles import layout
from omni_ros.policy.prefix import PrefixLayout
from omni_ros.policy.rope import ROPE_BASE

from ..common.errors import CheckpointError
from ..pi0.load import build, build_stage, load_checkpoint
from .joints import RAW, Names
from .policy import PolicyExport

#: LeRobot 0.4 padded states to this before it wrote them into π0.5's prompt.
OLD_STATE_WIDTH = 32


class Pi0Export(PolicyExport):
    """A checkpoint of a π0 or π0.5, one stage's weights at a time."""

    own_options = ("aloha", "relative", "vision_heads")
    pad = ("pad_token", "<pad>")
    load_checkpoint = staticmethod(load_checkpoint)
    build_stage = staticmethod(build_stage)
    build = staticmethod(build)

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        super().__init__(folder, options)
        self.old = self.checkpoint.compat == "lerobot-0.4"
        if self.old and self.checkpoint.config.adaptive:
            self.state_width = OLD_STATE_WIDTH

    def sections(self) -> dict[str, Any]:
        config = self.checkpoint.config
        return {
            **super().sections(),
            "family": "pi05" if config.adaptive else "pi0",
            "image": layout.Image(
                height=config.image_height, width=config.image_width, resize="pad",
                pad_value=-3.0 if self.old else -1.0, low=-1.0, high=1.0, placement="centre",
                clamp=True,
            ),
        }

    def prefix(self) -> tuple[layout.Prefix, int]:
        checkpoint, config = self.checkpoint, self.checkpoint.config
        tokens = PrefixLayout(checkpoint.slots, config.image_tokens, config.language,
                              special_tokens=False, state=False)
        where = "prompt" if config.adaptive else "suffix"
        return layout.Prefix(checkpoint.slots, 0, 0, ROPE_BASE, where), tokens.length

    def named(self, joints: Names, state: Names) -> dict[str, Any]:
        conventions = layout.Conventions(self.checkpoint.aloha, self.relative(joints, state))
        return {**super().named(joints, state), "conventions": conventions}

    def relative(self, joints: Names, state: Names) -> tuple[bool, ...]:
        """Return for each action whether it is relative to the state's value of the same place.

        :raises CheckpointError: nothing says which, or that value is another joint's.
        """
        relative, config = self.checkpoint.relative, self.checkpoint.config
        if relative is None:
            return ()
        names = relative.names
        if names is None and relative.apart:
            if joints == RAW:
                raise CheckpointError(
                    f"{self.folder}: actions are relative but for joints named "
                    f"{', '.join(relative.apart)}, and joints are raw: name them"
                )
            names = tuple(joint.name for joint in joints)
        made = tuple(
            not any(word.lower() in name.lower() for word in relative.apart)
            for name in (names or ())[:config.action]
        )
        made += (True,) * (config.action - len(made))
        for index, is_relative in enumerate(made):
            if is_relative and index >= config.state:
                raise CheckpointError(
                    f"{self.folder}: action {index} is relative to the state, which has "
                    f"{config.state} values: expected one for each relative action"
                )
            if is_relative and RAW not in (joints, state) and (
                    joints[index].name != state[index].name):
                raise CheckpointError(
                    f"action {index} is {joints[index].name} and relative to the state's value "
                    f"{index}, {state[index].name}: expected the same joint; name actions and state "
                    "in the order of the data set"
                )
        return made
