# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`ros2 launch omni_ros vla.launch.py policy:=bundle`: world, player and stages as users run them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time

import numpy as np
import pytest

from omni_ros.msg import ActionChunk, PlayerStatus
from omni_ros.nodes._support import CHUNK_QOS, LATCHED_QOS


@pytest.fixture(scope="module", params=["single", "separate"])
def launched(request, tools, policy_robot, bundle, ros_domain, tmp_path_factory):
    graph = tools.Graph(tmp_path_factory.mktemp("policy_launch"))
    graph.composition = request.param
    try:
        graph.eventually = tools.eventually
        graph.player = graph.record(PlayerStatus, "action_player/status", LATCHED_QOS)
        graph.chunks = graph.record(ActionChunk, "action_chunk", CHUNK_QOS)
        graph.launch = tools.Process("launch", [
            shutil.which("ros2"), "launch", "omni_ros", "vla.launch.py", "policy:=bundle",
            f"bundle:={bundle}", f"robot:={policy_robot()}", f"composition:={request.param}",
            "instruction:=touch the red block"], graph.folder)
        graph.processes.append(graph.launch)
        yield graph
    finally:
        graph.close()


def until_moving(graph) -> None:
    moment = time.monotonic()
    graph.eventually(lambda: any(
        m.state == PlayerStatus.STATE_PLAYING and np.abs(m.command_velocity).max() > 0.02
        for _, m in graph.player.since(moment)), f"motion\n{graph.logs()}", timeout_s=60.0)


def test_the_arm_moves_by_the_policy(launched):
    until_moving(launched)
    assert launched.chunks.last.source == "local"


def test_a_stage_that_is_killed_is_started_again_and_the_arm_goes_on(launched):
    name = "policy_stages" if launched.composition == "single" else "fusion_backbone"

    def pid() -> int:
        pattern = rf"\[{name}-\d+\]: process started with pid \[(\d+)\]"
        return int(re.findall(pattern, launched.launch.output)[-1])

    until_moving(launched)
    old = pid()
    os.kill(old, signal.SIGKILL)
    launched.eventually(lambda: pid() != old, "another process")
    until_moving(launched)


def test_no_shared_memory_is_left_behind(launched):
    """After Ctrl-C; the rings of what was killed were swept when the next one came up."""
    until_moving(launched)
    pids = re.findall(r"process started with pid \[(\d+)\]", launched.launch.output)
    launched.launch.end(timeout_s=60.0)
    left = [name for name in os.listdir("/dev/shm")
            if name.startswith("omni_ros.") and name.split(".")[1] in pids]
    assert not left
