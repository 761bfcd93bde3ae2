# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Rules that leave the arm to the local policy as long as it is there."""

from __future__ import annotations

import time

from std_srvs.srv import SetBool

from omni_ros.msg import BridgeStatus, PlayerStatus


def test_as_a_fallback_it_steps_in_when_the_local_policy_stops(bridged, remote):
    robot = bridged(remote.url, local=True, replan={"use": "fallback", "probe_s": 0.5})
    robot.until(robot.bridge, lambda s: s.decision == "local_good"
                and s.link == BridgeStatus.LINK_ACTIVE, "the local policy is good", 0.0)
    robot.until(robot.player, lambda s: s.source == "scripted", "the local policy plays")
    assert robot.graph.change_state("scripted_policy", "deactivate")
    robot.until_remote_plays()
    assert robot.graph.change_state("scripted_policy", "activate")
    robot.until(robot.player, lambda s: s.source == "scripted"
                and s.state == PlayerStatus.STATE_PLAYING, "handed back")


def test_on_demand_it_takes_over_while_somebody_asks_for_it(bridged, remote):
    robot = bridged(remote.url, local=True, replan={"use": "on_demand", "probe_s": 0.5})
    robot.until(robot.player, lambda s: s.source == "scripted", "the local policy plays")
    moment = time.monotonic()
    assert robot.graph.call(SetBool, "openpi_bridge/demand", SetBool.Request(data=True)).success
    robot.until(robot.bridge, lambda s: s.decision == "demanded", "demanded", moment)
    robot.until_remote_plays()
    assert robot.graph.call(SetBool, "openpi_bridge/demand", SetBool.Request(data=False)).success
    robot.until(robot.player, lambda s: s.source == "scripted", "handed back", time.monotonic())
    assert not robot.stops(moment)
