# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run an openpi_bridge beside a graph that runs, and watch both. Imports rclpy and the messages."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_prefix
from lifecycle_msgs.srv import ChangeState, GetState
from omni_ros.msg import BridgeStatus

from omni_ros.cli.player_probe import STATUS_QOS, PlayerProbe
from omni_ros.cli.processes import group_that_ends_with_parent, stop_tree

NAME = "openpi_bridge"
#: A node starts within this long on a busy machine, seconds.
PATIENCE_S = 180.0
#: ... and answers within this long.
ANSWER_S = 30.0
CONFIGURE, ACTIVATE = 1, 3
GOALS = {CONFIGURE: "inactive", ACTIVATE: "active"}


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
        """Ask for a transition until it is made: an answer can be lost while both ends are still
        finding each other, or go to the bridge before, so what counts is the state afterwards."""
        change = self._node.create_client(ChangeState, f"{NAME}/change_state")
        state = self._node.create_client(GetState, f"{NAME}/get_state")
        request = ChangeState.Request()
        request.transition.id = step
        end, said = time.monotonic() + PATIENCE_S, None
        try:
            while time.monotonic() < end:
                answer = self._ask(change, request)
                if answer is not None and answer.success:
                    return
                now = self._ask(state, GetState.Request())
                if now is not None and now.current_state.label == GOALS[step]:
                    return
                said = now.current_state.label if now is not None else said
        finally:
            self._node.destroy_client(change)
            self._node.destroy_client(state)
        raise RuntimeError(f"{NAME} does not become {GOALS[step]} within {PATIENCE_S:g} s, its last "
                           f"state is {said}; it says:\n{log.read_text()[-2000:]}")

    def _ask(self, client: Any, request: Any) -> Any:
        """Return the answer; None if there is none within some seconds."""
        try:
            self._wait(client.service_is_ready, ANSWER_S, "no service")
            future = client.call_async(request)
            self._wait(future.done, ANSWER_S, "no answer")
        except RuntimeError:
            self._check_alive()
            return None
        return future.result()

    def wait_for_link(self, links: tuple[int, ...], timeout_s: float) -> Any:
        """Return the bridge's first status with one of some links."""
        self._wait(lambda: self.bridge is not None and self.bridge.link in links, timeout_s,
                   f"the bridge's link is {self.bridge.link if self.bridge else 'unknown'}, "
                   f"expected one of {links}; {self.bridge.text if self.bridge else ''}")
        return self.bridge
