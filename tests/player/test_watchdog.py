# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Ages to reasons."""

from __future__ import annotations

import pytest

from omni_ros.player import Reason
from omni_ros.player.watchdog import Ages, describe, stale
from omni_ros.robot import PlayerConfig

CONFIG = PlayerConfig()


def test_what_was_never_measured_is_never_too_old():
    assert stale(Ages(), CONFIG) == []


@pytest.mark.parametrize(
    ("field", "limit", "reason"),
    [
        ("joint_state", CONFIG.joint_state_timeout_s, Reason.JOINT_STATE_STALE),
        ("observation", CONFIG.observation_timeout_s, Reason.OBSERVATION_STALE),
        ("heartbeat", CONFIG.heartbeat_timeout_s, Reason.HEARTBEAT_LOST),
    ],
)
def test_each_age_has_its_limit_and_words_with_both_numbers(field, limit, reason):
    assert stale(Ages(**{field: limit}), CONFIG) == []
    old = Ages(**{field: limit + 0.001})
    assert stale(old, CONFIG) == [reason]
    text = describe(reason, old, CONFIG)
    assert f"{limit + 0.001:.3f}" in text and f"{limit:g}" in text


@pytest.mark.parametrize(
    "reason",
    [
        Reason.NO_CLOCK, Reason.NO_JOINT_STATE, Reason.JOINT_STATE_STALE, Reason.OBSERVATION_STALE,
        Reason.CHUNK_STALE, Reason.STARVED, Reason.HEARTBEAT_LOST, Reason.NON_FINITE,
        Reason.PROTECTIVE_STOP, Reason.CLOCK_JUMP, Reason.SHUTDOWN, Reason.OUT_OF_LIMITS,
    ],
)  # fmt: skip
def test_every_reason_of_a_state_has_words_even_when_it_is_over(reason):
    assert len(describe(reason, Ages(), CONFIG)) > 10
