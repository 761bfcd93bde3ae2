# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""An action player whose tick keeps the interpreter busy for most of its period."""

from __future__ import annotations

import sys
import time

from omni_ros.nodes._runtime import run
from omni_ros.nodes.action_player import ActionPlayer

BUSY_S = 0.015


class BusyPlayer(ActionPlayer):
    """Computes in Python, as a slow tick would: sleeping would let others have the interpreter."""

    def _tick(self, now_ns: int, standstill: bool) -> None:
        until = time.perf_counter() + BUSY_S
        while time.perf_counter() < until:
            sum(range(100))
        super()._tick(now_ns, standstill)


if __name__ == "__main__":
    sys.exit(run(BusyPlayer))
