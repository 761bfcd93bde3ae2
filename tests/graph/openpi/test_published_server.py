# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The launch beside the published openpi-server: it moves the arm, and either may be killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omni_ros.msg import BridgeStatus, PlayerStatus
from omni_ros.nodes._support import LATCHED_QOS

#: Put there by the tests in tests/openpi.
PACKAGES = Path(sys.prefix) / "share" / "omni_ros" / "openpi_packages"
MOVING = (PlayerStatus.STATE_PLAYING, PlayerStatus.STATE_RAMPING_IN)
PATIENCE_S = 90.0
SERVER = """
import sys, time, numpy as np
from openpi_server import WebsocketPolicyServer
from openpi_client.base_policy import BasePolicy

class Policy(BasePolicy):
    def infer(self, observation):
        assert observation["images"]["front"].shape == (96, 96, 3)
        rows = np.tile(np.asarray(observation["state"], np.float32), (16, 1))
        rows[:, 0] = 0.3 * np.sin(2.0 * (time.monotonic() + np.arange(16) / 15.0))
        return {"actions": rows}

WebsocketPolicyServer(Policy(), "127.0.0.1", int(sys.argv[1]), {"name": "published"}).serve_forever()
"""


def serve(port: int) -> subprocess.Popen:
    path = os.pathsep.join(filter(None, [str(PACKAGES), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen([sys.executable, "-P", "-c", SERVER, str(port)],
                            env={**os.environ, "PYTHONPATH": path})


@pytest.mark.skipif(not PACKAGES.is_dir(), reason="openpi-server is not installed beside the tests")
def test_it_replans_from_the_published_server_and_outlives_a_kill_of_either(
        graph, tools, tmp_path, openpi_tools):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    mapping = openpi_tools.write_mapping(tmp_path)
    players = graph.record(PlayerStatus, "action_player/status", LATCHED_QOS)
    bridges = graph.record(BridgeStatus, "bridge_status", LATCHED_QOS)
    remote = serve(port)
    try:
        launch = tools.Process("launch", [
            shutil.which("ros2"), "launch", "omni_ros", "vla.launch.py", "policy:=scripted",
            "bridge:=replan", f"openpi:=ws://127.0.0.1:{port}/", f"mapping:={mapping}",
            "instruction:=wave"], graph.folder)
        graph.processes.append(launch)

        def until(recorder, condition, what: str, moment: float) -> None:
            tools.eventually(lambda: any(condition(m) for _, m in recorder.since(moment)), what,
                             PATIENCE_S)

        def remote_plays(moment: float) -> None:
            until(players, lambda s: s.source.startswith("openpi:") and s.state in MOVING,
                  "the remote plays", moment)

        def local_plays(moment: float) -> None:
            until(players, lambda s: s.source == "scripted" and s.state in MOVING,
                  "the local policy plays", moment)

        remote_plays(0.0)
        assert bridges.last.dialect == "openpi"
        moment = time.monotonic()
        remote.kill()
        until(bridges, lambda s: s.link == BridgeStatus.LINK_DEGRADED, "DEGRADED", moment)
        local_plays(moment)
        remote = serve(port)
        remote_plays(time.monotonic())
        moment = time.monotonic()
        pid = re.findall(r"\[openpi_bridge-\d+\]: process started with pid \[(\d+)\]", launch.output)
        os.kill(int(pid[-1]), signal.SIGKILL)
        local_plays(moment)
        until(bridges, lambda s: s.active and s.sequence < 50, "the bridge is back", moment)
        remote_plays(time.monotonic())
        assert not any(s.state == PlayerStatus.STATE_TRIPPED for s in players.messages)
    finally:
        remote.kill()
        remote.wait()
