# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run an openpi_bridge beside a graph that runs, and watch both. Imports rclpy and the messages."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_prefix
from lifecycle_msgs.srv import ChangeState
from omni_ros.msg import BridgeStatus

from omni_ros.cli.player_probe import STATUS_QOS, PlayerProbe
from omni_ros.cli.processes import group_that_ends_with_parent, stop_tree

NAME = "openpi_bridge"
#: A node starts within this long on a busy machine, seconds.
PATIENCE_S = 120.0
CONFIGURE, ACTIVATE = 1, 3


class BridgeProbe(PlayerProbe):
    """A probe that can also bring up a bridge."""

    def __enter__(self) -> BridgeProbe:
        super().__enter__()
        self.bridge: BridgeStatus | None = None
        self._node.create_subscription(BridgeStatus, "bridge_status", self._see, STATUS_QOS)
        return self

    def _see(self, message: BridgeStatus) -> None:
        self.bridge = message

    @contextmanager
    def running_bridge(self, log: Path, **parameters: Any) -> Iterator[None]:
        """Have an active bridge for the length of the block. :raises RuntimeError: it does not come."""
        program = Path(get_package_prefix("omni_ros")) / "lib" / "omni_ros" / NAME
        words = [str(program), "--ros-args"]
        for name, value in parameters.items():
            words += ["-p", f"{name}:={value}"]
        self.bridge = None
        with log.open("w") as sink:
            process = subprocess.Popen(
                words, stdout=sink, stderr=subprocess.STDOUT, cwd="/",
                preexec_fn=group_that_ends_with_parent())
            try:
                for step in (CONFIGURE, ACTIVATE):
                    self._change(step, log)
                yield
            finally:
                stop_tree(process)

    def _change(self, step: int, log: Path) -> None:
        client = self._node.create_client(ChangeState, f"{NAME}/change_state")
        try:
            request = ChangeState.Request()
            request.transition.id = step
            self._wait(lambda: client.service_is_ready(), PATIENCE_S, f"no {NAME}: see {log}")
            future = client.call_async(request)
            self._wait(future.done, PATIENCE_S, f"no answer from {NAME}")
        finally:
            self._node.destroy_client(client)
        if not future.result().success:
            raise RuntimeError(f"{NAME} does not come up:\n{log.read_text()[-2000:]}")

    def wait_for_link(self, links: tuple[int, ...], timeout_s: float) -> Any:
        """Return the bridge's first status with one of some links."""
        self._wait(lambda: self.bridge is not None and self.bridge.link in links, timeout_s,
                   f"the bridge's link is {self.bridge.link if self.bridge else 'unknown'}, "
                   f"expected one of {links}; {self.bridge.text if self.bridge else ''}")
        return self.bridge
