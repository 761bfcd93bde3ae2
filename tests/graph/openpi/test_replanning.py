# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A remote policy moves the arm; whatever becomes of the link, the arm obeys its own rules."""

from __future__ import annotations

import socket
import time

import numpy as np
import pytest

from omni_ros.msg import BridgeStatus, PlayerStatus

MOVING = (PlayerStatus.STATE_PLAYING, PlayerStatus.STATE_RAMPING_IN)


def test_the_remote_policy_moves_the_arm_by_what_the_sentence_says(bridged, remote):
    robot = bridged(remote.url)
    robot.until_remote_plays()
    moment = time.monotonic()
    robot.eventually(lambda: np.ptp([m.position[0] for _, m in robot.joints.since(moment)] or [0.0])
                     > 0.1, f"the arm moves\n{robot.graph.logs()}")
    assert set(remote.policy.asked) == {"wave"}
    status = robot.bridge.last
    assert status.link == BridgeStatus.LINK_ACTIVE and status.decision == "always"
    assert status.source == robot.player.last.source and status.chunks_offered > 0


def test_a_half_open_link_degrades_with_a_reason_and_the_arm_stops_until_it_is_back(bridged, remote):
    robot = bridged(remote.url)
    robot.until_remote_plays()
    moment, remote.wire.stalled = time.monotonic(), True
    status = robot.until(robot.bridge, lambda s: s.link == BridgeStatus.LINK_DEGRADED, "DEGRADED",
                         moment)
    assert status.reason == "slow" and "0.5" in status.text
    assert status.source == "scripted" and status.decision == "remote_degraded"
    robot.until_stopped(moment)
    remote.wire.stalled = False
    robot.until_remote_plays()


def test_a_server_that_goes_away_hands_over_to_the_local_policy_without_a_stop(bridged, remote):
    robot = bridged(remote.url, local=True)
    robot.until_remote_plays()
    moment = time.monotonic()
    remote.stop()
    robot.until(robot.player, lambda s: s.source == "scripted" and s.state in MOVING,
                "the local policy plays", moment)
    remote.restart()
    robot.until_remote_plays()
    assert not robot.stops(moment)


def test_while_the_first_reply_takes_long_it_warms_up_and_nothing_moves(bridged, remote):
    remote.policy.first_s = 4.0
    robot = bridged(remote.url, replan={"deadline_s": 1.0})
    robot.until(robot.bridge, lambda s: s.link == BridgeStatus.LINK_WARMING
                and s.decision == "remote_warming", "WARMING", 0.0)
    assert not robot.chunks
    robot.until(robot.bridge, lambda s: s.link == BridgeStatus.LINK_ACTIVE, "ACTIVE")
    robot.until_remote_plays()


def test_a_server_that_lets_nobody_in_leaves_the_local_policy_alone(bridged):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never says a word
        url = f"ws://127.0.0.1:{silent.getsockname()[1]}/"
        robot = bridged(url, local=True, remote={"connect_timeout_s": 0.5, "handshake_timeout_s": 0.5})
        moment = time.monotonic()
        status = robot.until(
            robot.bridge, lambda s: s.link == BridgeStatus.LINK_DEGRADED, "DEGRADED", 0.0)
        assert status.reason in ("connect_timeout", "handshake_timeout")
        robot.until(robot.player, lambda s: s.state == PlayerStatus.STATE_PLAYING, "playing", moment)
        moment = time.monotonic()
        robot.eventually(lambda: time.monotonic() > moment + 3.0, "some tries to connect")
        assert {m.source for _, m in robot.player.since(moment)} <= {"scripted", ""}
        assert not robot.stops(moment)


def test_a_server_that_stalls_is_given_up_and_connected_to_anew(bridged, remote):
    robot = bridged(remote.url, remote={"reply_timeout_s": 1.0})
    robot.until_remote_plays()
    connects, moment = robot.count("connects"), time.monotonic()
    remote.policy.delay_s = 3.0
    robot.until(robot.bridge, lambda s: s.reason == "stalled", "stalled", moment)
    robot.until_stopped(moment)
    remote.policy.delay_s = 0.0
    robot.until_remote_plays()
    assert robot.count("connects") > connects
    assert robot.count("connects") < connects + 50


def test_replies_outside_of_the_joints_limits_are_dropped_and_counted(bridged, remote):
    remote.policy.shift = 40.0
    robot = bridged(remote.url)
    robot.until(robot.bridge, lambda s: "dropped_out_of_limits" in s.counter_names, "a drop", 0.0)
    # Decided anew after the drop was counted, and never unsaid while replies stay as they are.
    robot.until(robot.bridge, lambda s: s.decision == "remote_unplayable", "unplayable", 0.0)
    time.sleep(1.0)
    assert robot.bridge.last.decision == "remote_unplayable"
    assert not robot.chunks and robot.bridge.last.chunks_offered == 0
    assert robot.player.last.state == PlayerStatus.STATE_HOLDING
    remote.policy.shift = 0.0
    robot.until_remote_plays()


def test_on_simulated_time_it_replans_by_the_worlds_clock_and_survives_a_reset_of_it(bridged, remote):
    robot = bridged(remote.url, simulated=True, local=True)
    robot.until_remote_plays()
    # Simulated time began at 0: stamps and ages are by it, on the status as on the chunks.
    assert robot.bridge.last.header.stamp.sec < 10_000
    assert all(m.header.stamp.sec < 10_000 for m in robot.chunks.messages)
    process = next(p for p in robot.graph.processes if p.name == "world")
    process.kill()  # the clock stands still
    def offered() -> int:
        return sum(m.source.startswith("openpi:") for m in robot.chunks.messages)

    time.sleep(1.0)
    count = offered()
    time.sleep(1.0)
    assert offered() <= count + 1  # without a clock nothing is new, and nothing is asked
    robot.graph.start("world", name="world", image_rate=10.0, publish_clock=True)  # and goes back to 0
    robot.graph.bring_up("world")
    robot.eventually(lambda: "the clock went back" in robot.graph.logs(), "the clock went back")
    robot.until_remote_plays()
    assert robot.graph.state("openpi_bridge") == "active"


def test_the_mode_changes_while_it_runs_and_the_local_policy_takes_over(bridged, remote):
    robot = bridged(remote.url, local=True)
    robot.until_remote_plays()
    moment = time.monotonic()
    assert robot.set("off")
    robot.until(robot.bridge, lambda s: s.mode == BridgeStatus.MODE_OFF
                and s.link == BridgeStatus.LINK_OFF, "off", moment)
    robot.until(robot.player, lambda s: s.source == "scripted" and s.state in MOVING,
                "the local policy plays", moment)
    assert robot.set("replan")
    robot.until_remote_plays()
    assert not robot.stops(moment)


@pytest.mark.parametrize("value", ["sometimes", 3])
def test_a_mode_that_is_none_is_refused(bridged, remote, value):
    robot = bridged(remote.url, mode="off")
    assert not robot.set(value)
    assert robot.set(False)  # what YAML makes of a bare off
    assert robot.set("parity")


def test_a_bridge_that_is_killed_stops_the_arm_and_the_local_policy_takes_over(bridged, remote):
    robot = bridged(remote.url, local=True)
    robot.until_remote_plays()
    moment = time.monotonic()
    next(p for p in robot.graph.processes if p.name == "openpi_bridge").kill()
    robot.until(robot.player, lambda s: s.source == "scripted" and s.state in MOVING,
                "the local policy plays", moment)
    states = {m.state for _, m in robot.player.since(moment)}
    assert PlayerStatus.STATE_TRIPPED not in states


def test_nothing_is_asked_before_there_is_an_instruction(bridged, remote):
    robot = bridged(remote.url)
    robot.until_remote_plays()
    from std_msgs.msg import String

    robot._sentences.publish(String(data=""))
    robot.until(robot.bridge, lambda s: s.observation_text == "no instruction yet", "no instruction")
    asked = len(remote.policy.asked)
    moment = time.monotonic()
    robot.until_stopped(moment)
    assert len(remote.policy.asked) <= asked + 1
