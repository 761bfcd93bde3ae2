# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of a source of chunks: they say that its process lives, whatever it computes."""

from __future__ import annotations

import os
import threading
from typing import Any

from omni_ros.msg import Heartbeat
from omni_ros.nodes._support import pid_scope

PERIOD_S = 0.05


class Heart:
    """Beats from `start` to `stop`, in a thread of its own."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def start(self, source: str, publisher: Any) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, args=(source, publisher, self._ended), name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join(timeout=1.0)
            self._thread = None

    def _beat(self, source: str, publisher: Any, ended: threading.Event) -> None:
        beat = Heartbeat(source=source, pid=os.getpid(), pid_scope=pid_scope())
        while not ended.wait(PERIOD_S):
            beat.header.stamp = self._node.get_clock().now().to_msg()
            beat.sequence += 1
            publisher.publish(beat)
