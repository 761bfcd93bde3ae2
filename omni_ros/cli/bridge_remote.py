# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A remote policy that misbehaves on demand, for `omni bench bridge`: a process of its own.

    python -m omni_ros.cli.bridge_remote ROBOT.yaml

prints the URL to reach it at, then reads what to be like, a word a line: one of CONDITIONS.
"""

from __future__ import annotations

import contextlib
import select
import socket
import sys
import threading
import time
from typing import Any

import numpy as np

ROWS = 16
#: Seconds that a slow remote takes for a chunk: over any remote_timeout_s, below reply_timeout_s.
SLOW_S = 1.5
#: What it can be like, and what that is for a bridge.
CONDITIONS = {
    "up": "replies at once; its chunks are played",
    "slow": f"takes {SLOW_S:g} s for a reply",
    "half-open": "nothing gets through, and nobody says so",
    "silent": "takes connections, and never says a word",
    "down": "refuses connections",
}


class Waves:
    """A served policy: waves the first joint about its home."""

    takes: tuple[str, ...] = ()

    def __init__(self, robot: Any) -> None:
        self.cameras = tuple(robot.cameras)
        self.state_names = tuple(robot.policy_names)
        self.metadata = {"policy": "wave"}
        self.delay_s = 0.0
        self._robot = robot

    def infer(self, request: Any) -> Any:
        from omni_ros.openpi.serving import ServedReply

        time.sleep(self.delay_s)
        robot = self._robot
        rows = np.tile(robot.home, (ROWS, 1))
        swing = 0.1 * (robot.upper[0] - robot.lower[0])
        rows[:, 0] += swing * np.sin(2.0 * (time.monotonic() + np.arange(ROWS) / 15.0))
        return ServedReply(robot.to_policy(rows).astype(np.float32))

    def reset(self, session: str) -> None:
        """Nothing is kept."""


class Wire:
    """A TCP proxy on a port that stays the same; `condition` says what it does with what comes."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.condition = "down"
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            while self.condition == "down":
                time.sleep(0.01)
            with socket.create_server(("127.0.0.1", self.port)) as server:
                while self.condition != "down":
                    if select.select([server], [], [], 0.02)[0]:
                        near, _ = server.accept()
                        threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection(
                ("127.0.0.1", self._target)) as far:
            while self.condition != "down":
                if self.condition in ("half-open", "silent"):
                    time.sleep(0.01)
                    continue
                for end in select.select([near, far], [], [], 0.02)[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    (far if end is near else near).sendall(data)


def main(robot_path: str) -> int:
    """Serve until standard input ends."""
    from omni_ros.openpi.server import PolicyServer
    from omni_ros.openpi.server_settings import ServerSettings
    from omni_ros.robot import load_robot

    policy = Waves(load_robot(robot_path))
    server = PolicyServer(policy, ServerSettings(port=0))
    server.start()
    wire = Wire(server.address[1])
    print(f"ws://127.0.0.1:{wire.port}/", flush=True)
    for line in sys.stdin:
        word = line.strip()
        policy.delay_s = SLOW_S if word == "slow" else 0.0
        wire.condition = word
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
