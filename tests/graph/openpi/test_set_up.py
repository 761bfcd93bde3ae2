# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is refused before the arm moves, and the bridge as it is launched."""

from __future__ import annotations

import shutil

import pytest

from omni_ros.msg import BridgeStatus
from omni_ros.nodes._support import LATCHED_QOS


def configured(graph, **parameters) -> bool:
    graph.start("openpi_bridge", mode="parity", **parameters)
    return graph.change_state("openpi_bridge", "configure")


def test_a_server_of_another_policy_is_refused_at_configure(graph, remote, openpi_tools, tmp_path):
    remote.stop()
    remote.policy.metadata = {"action_dim": 3}
    remote.restart()
    mapping = openpi_tools.write_mapping(tmp_path)
    assert not configured(graph, openpi=remote.url, mapping=mapping)
    assert "on_configure failed" in graph.logs() and "action_dim 3" in graph.logs()


def test_a_server_that_is_not_there_is_no_reason_to_refuse(graph, remote, openpi_tools, tmp_path):
    remote.stop()
    assert configured(graph, openpi=remote.url, mapping=openpi_tools.write_mapping(tmp_path))
    assert "the remote policy is not there" in graph.logs()


@pytest.mark.parametrize(("section", "settings", "words"), [
    ("actions", {"control_mode": "velocity"}, "player.output"),
    ("actions", {"columns": ["elbow"]}, "elbow"),
    ("replan", {"use": "sometimes"}, "sometimes"),
])
def test_a_mapping_that_does_not_fit_is_refused_with_what_is_wrong(
        graph, openpi_tools, tmp_path, section, settings, words):
    mapping = openpi_tools.write_mapping(tmp_path, **{section: settings})
    assert not configured(graph, mapping=mapping)
    assert words in graph.logs()


def test_it_is_launched_beside_a_local_policy(graph, tools, remote):
    statuses = graph.record(BridgeStatus, "bridge_status", LATCHED_QOS)
    graph.processes.append(tools.Process("launch", [
        shutil.which("ros2"), "launch", "omni_ros", "vla.launch.py", "policy:=scripted",
        "bridge:=replan", f"openpi:={remote.url}", "instruction:=wave"], graph.folder))
    tools.eventually(lambda: any(
        s.mode == BridgeStatus.MODE_REPLAN and s.link == BridgeStatus.LINK_ACTIVE
        and s.decision == "local_good" for s in statuses.messages), graph.logs(), 90.0)
    assert statuses.last.source == "scripted"
