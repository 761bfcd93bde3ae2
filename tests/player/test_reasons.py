# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The enums of the core are the constants of the messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omni_ros.player import ControlMode, Reason, State

MSG = Path(__file__).parents[2] / "msg"


@pytest.mark.parametrize(
    ("enum", "file", "prefix"),
    [
        (State, "PlayerStatus.msg", "STATE_"),
        (Reason, "PlayerStatus.msg", "REASON_"),
        (ControlMode, "ActionChunk.msg", "CONTROL_"),
    ],
)
def test_the_enum_has_the_names_and_numbers_of_the_message(enum, file, prefix):
    text = (MSG / file).read_text(encoding="utf-8")
    constants = dict(re.findall(rf"^uint8 {prefix}(\w+)=(\d+)", text, flags=re.MULTILINE))
    assert {name: int(number) for name, number in constants.items()} == {
        member.name: member.value for member in enum
    }
