# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The thread in which the world's time runs, with absolute deadlines."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Callable

import numpy as np

from omni_ros.world.arm import CONTROL_PERIOD_S, ControlledArm
from omni_ros.world.pacing import Divider, Pacer

#: How long the physics may take to end before that is reported, seconds.
JOIN_TIMEOUT_S = 2.0
PERIOD_NS = round(CONTROL_PERIOD_S * 1e9)


@dataclass(frozen=True)
class Outputs:
    """What is published of a step; each is called with the stamp of the step, ns.

    ``clock`` is None where ROS time is not the world's to say; ``images`` is None without cameras.
    """

    joints: Callable[[int, tuple[np.ndarray, ...]], None]
    clock: Callable[[int], None] | None
    images: Callable[[int, np.ndarray], None] | None


class PhysicsThread:
    """Steps the arm, each step stamped with the instant it stands for.

    ``lock`` guards the arm, and is held for one control period at the most. ``value`` returns the
    node's parameters by name, ``ros_now`` ROS time in ns, and ``guarded`` runs the thread's work
    and ends the node if it fails.
    """

    def __init__(self, arm: ControlledArm, lock: threading.Lock, outputs: Outputs,
                 value: Callable, ros_now: Callable[[], int], guarded: Callable) -> None:
        self._arm, self._lock, self._outputs = arm, lock, outputs
        self._ros_now = ros_now
        self._stop = threading.Event()
        self._joints = Divider(value("joint_state_rate"))
        self._images = Divider(value("image_rate") if outputs.images else 0.0)
        self._clock = Divider(value("clock_rate"))
        self.pacer = Pacer(CONTROL_PERIOD_S, value("real_time_factor"))
        self._thread = threading.Thread(target=lambda: guarded(self._run), name="world_physics")
        self.sim_ns = 0
        self._last_ns = 0

    def start(self, sim_ns: int) -> None:
        """Let time run, simulated time from `sim_ns`."""
        self.sim_ns = sim_ns
        self._thread.start()

    def stop(self) -> bool:
        """Stop time; whether the thread has ended."""
        self._stop.set()
        self._thread.join(JOIN_TIMEOUT_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self.pacer.start(time.monotonic_ns())
        while not self._stop.is_set():
            deadline, now = self.pacer.deadline_ns, time.monotonic_ns()
            if self.pacer.due(now):
                self._step(deadline)
            else:
                time.sleep((deadline - now) * 1e-9)

    def _stamp(self, deadline: int) -> int:
        if self._outputs.clock is not None:
            self.sim_ns += PERIOD_NS
            return self.sim_ns
        # The deadline in ROS time, so that stamps are evenly spaced however late we are. They keep
        # rising when the clock is set back a little; a leap is passed on.
        stamp_ns = self._ros_now() - (time.monotonic_ns() - deadline)
        if 0 <= self._last_ns - stamp_ns < 1_000_000_000:
            stamp_ns = self._last_ns + 1
        self._last_ns = stamp_ns
        return stamp_ns

    def _step(self, deadline: int) -> None:
        stamp_ns = self._stamp(deadline)
        run_ns = self.pacer.steps * PERIOD_NS  # evenly spaced, unlike stamps: rates come out even
        with self._lock:
            self._arm.step(stamp_ns)
            joint_state = self._arm.joint_state() if self._joints.due(run_ns) else None
            pose = self._arm.simulation.pose() if self._images.due(run_ns) else None
        if self._outputs.clock is not None and self._clock.due(run_ns):
            self._outputs.clock(stamp_ns)
        if pose is not None:
            self._outputs.images(stamp_ns, pose)
        if joint_state is not None:
            self._outputs.joints(stamp_ns, joint_state)
