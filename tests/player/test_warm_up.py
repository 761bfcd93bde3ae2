# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The run that warms up the player's code."""

from __future__ import annotations

import pytest

from omni_ros.player.warm_up import TICKS, warm_up


@pytest.mark.parametrize("rate_hz", [10.0, 50.0, 500.0])
def test_the_warm_up_commands_and_moves_at_any_rate(make_rig, rate_hz):
    commands = []
    made = warm_up(make_rig(rate_hz=rate_hz).robot, commands.append)
    assert made == len(commands) >= TICKS - 1
    assert any(command.velocity.any() for command in commands)
    assert not commands[-1].velocity.any()
