# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the probe makes of a player's statuses; no node is started here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")
from omni_ros.cli import UsageError  # noqa: E402
from omni_ros.cli.player_probe import PlayerProbe, latched_trip  # noqa: E402
from omni_ros.msg import PlayerStatus  # noqa: E402


def probe_that_hears(*statuses: PlayerStatus) -> PlayerProbe:
    probe, left = PlayerProbe(lambda: None), list(statuses)
    probe._topic = "/left/action_player/status"
    probe.spin = lambda seconds: probe._keep(left.pop(0)) if left else None
    probe._executor = SimpleNamespace(spin_once=lambda timeout_sec: probe.spin(0.0))
    return probe


def test_a_player_that_is_tripped_from_before_is_told_at_once_with_what_to_type(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    status = PlayerStatus(state=PlayerStatus.STATE_TRIPPED, text="protective stop asked for")
    with pytest.raises(UsageError) as refusal:
        probe_that_hears(status).wait_until_playing(120.0)
    text = str(refusal.value)
    assert "TRIPPED" in text and "protective stop asked for" in text
    assert "ROS_DOMAIN_ID=7 ros2 launch omni_ros vla.launch.py policy:=none namespace:=left" in text
    assert "ros2 service call /left/action_player/reset std_srvs/srv/Trigger" in text


def test_a_player_without_a_namespace_is_reset_in_none():
    text = latched_trip(PlayerStatus(), "/action_player/status")
    assert "namespace" not in text and "call /action_player/reset " in text


def test_statuses_in_sequence_are_one_run_of_one_player():
    probe = probe_that_hears(*[PlayerStatus(sequence=number) for number in (4, 5, 6)])
    probe.spin(0.0)
    assert probe.fresh_status().sequence == 6


def test_statuses_of_two_players_are_an_error_and_no_figures():
    probe = probe_that_hears(*[PlayerStatus(sequence=number) for number in (90, 7, 91)])
    probe.spin(0.0)
    with pytest.raises(RuntimeError, match="out of sequence.*restarted.*second"):
        probe.fresh_status()
