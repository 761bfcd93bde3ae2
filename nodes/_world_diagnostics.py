# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the simulated world says of itself once a second."""

from __future__ import annotations

import time

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from omni_ros.nodes._world_cameras import CameraThread
from omni_ros.world.arm import CONTROL_PERIOD_S, ControlledArm
from omni_ros.world.pacing import Pacer

#: Below this share of the speed that was asked for, the machine is too slow.
SLOW = 0.97


class Report:
    """What happened since it was last asked: real-time factor and counters."""

    def __init__(self, name: str) -> None:
        self._name = f"{name}: simulation"
        self._pacer: Pacer | None = None
        self._seen: dict[str, int] = {}
        self._steps = 0
        self._since_ns = 0

    def start(self, pacer: Pacer) -> None:
        """Begin anew with the pacer of the running physics."""
        self._steps, self._since_ns, self._pacer = 0, time.monotonic_ns(), pacer

    def status(self, arm: ControlledArm, cameras: CameraThread, asked: float) -> DiagnosticStatus:
        """Return the state of the world, which should run at `asked` times real time."""
        rejected, dropped = sum(arm.rejected.values()), cameras.dropped
        factor = self._real_time_factor()
        fresh = self._changes(rejected=rejected, dropped=dropped)
        problems = []
        if factor is not None and factor < SLOW * asked:
            problems.append(f"runs at {factor:.2f} of real time, asked for {asked:.2f}")
        if fresh["dropped"]:
            problems.append(f"{fresh['dropped']} image(s) dropped: drawing is too slow")
        if fresh["rejected"]:
            problems.append(f"{fresh['rejected']} command(s) refused: {arm.last_rejection}")
        slipped_s = 0.0 if self._pacer is None else self._pacer.slipped_ns * 1e-9
        values = {
            "controller": arm.controller,
            "real-time factor": "" if factor is None else f"{factor:.3f}",
            "time given up (s)": f"{slipped_s:.3f}",
            "commands accepted": sum(arm.accepted.values()),
            "commands refused": rejected,
            "last refusal": arm.last_rejection,
            "command timeouts": arm.trajectory.timeouts,
            "images published": cameras.published,
            "images dropped": dropped,
            "drawing time (ms)": f"{cameras.render_s * 1e3:.2f}",
        }
        return DiagnosticStatus(
            name=self._name,
            hardware_id="omni_ros table-top (simulated)",
            level=DiagnosticStatus.WARN if problems else DiagnosticStatus.OK,
            message="; ".join(problems) or ("running" if arm.active else "inactive"),
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )

    def _real_time_factor(self) -> float | None:
        """Return simulated seconds a second since the last call, None before the first step."""
        if self._pacer is None:
            return None
        now, steps = time.monotonic_ns(), self._pacer.steps
        simulated_ns = (steps - self._steps) * CONTROL_PERIOD_S * 1e9
        factor = simulated_ns / max(now - self._since_ns, 1)
        self._steps, self._since_ns = steps, now
        return factor

    def _changes(self, **counters: int) -> dict[str, int]:
        """Return by how much each counter rose since the last call."""
        rises = {name: value - self._seen.get(name, 0) for name, value in counters.items()}
        self._seen.update(counters)
        return rises
