# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What `omni bench graph` sees of a running policy graph: its chunks, and what its processes hold.

The node imports rclpy when it is made; all else works without ROS.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omni_ros.cli.processes import cpu_seconds, descendants

#: Entries of a chunk's timings that are programs; the rest is the graph's own.
PROGRAMS = ("vision_encoder", "fusion_backbone", "action_head")
SHARED_MEMORY = Path("/dev/shm")
RING_PREFIX = "omni_ros."


@dataclass(frozen=True)
class ChunkCost:
    """One chunk, in seconds.

    :param stages: by name; names that come twice (hand_off) are added up.
    :param total: from the observation's stamp to the chunk's publication.
    :param to_receipt: to its receipt by this process.
    """

    stages: dict[str, float]
    total: float
    to_receipt: float

    @property
    def graph(self) -> float:
        """Return what was spent outside of the programs."""
        return self.total - sum(self.stages.get(name, 0.0) for name in PROGRAMS)

    @property
    def own(self) -> float:
        """Return the same from the receipt of the last picture on: without the cameras' sending."""
        return self.graph - self.stages.get("arrival", 0.0)


@dataclass(frozen=True)
class Held:
    """What one process, or all of a graph together, hold at a moment."""

    resident_kb: int
    files: int
    threads: int

    def __add__(self, other: Held) -> Held:
        return Held(self.resident_kb + other.resident_kb, self.files + other.files,
                    self.threads + other.threads)


@dataclass
class Sample:
    """All processes of a graph at a moment."""

    seconds: float
    processes: dict[str, Held] = field(default_factory=dict)
    rings: int = 0
    ring_kb: int = 0


class ChunkWatch:
    """A node that takes in action chunks and policy statuses. A context manager."""

    def __init__(self, check_alive: Callable[[], None], source: str = "local") -> None:
        self._check_alive, self._source = check_alive, source
        self.costs: list[ChunkCost] = []
        self.status: dict[str, Any] = {}

    def __enter__(self) -> ChunkWatch:
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

        from omni_ros.msg import ActionChunk, PolicyStatus

        self._context = Context()
        rclpy.init(context=self._context)
        self._node = rclpy.create_node("omni_bench_graph", context=self._context)
        reliable = QoSProfile(depth=20, reliability=ReliabilityPolicy.RELIABLE)
        latched = QoSProfile(depth=8, reliability=ReliabilityPolicy.RELIABLE,
                             durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._node.create_subscription(ActionChunk, "action_chunk", self._keep, reliable)
        self._node.create_subscription(PolicyStatus, "policy_status", self._keep_status, latched)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        return self

    def __exit__(self, *exception: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.shutdown()

    def spin(self, seconds: float) -> None:
        """Take in what comes for a while.

        :raises RuntimeError: the graph has ended.
        """
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=min(left, 0.5))
            self._check_alive()

    def wait_for_chunks(self, count: int, timeout: float) -> None:
        """Wait until chunks come.

        :raises RuntimeError: not in time; with what the stages say.
        """
        end = time.monotonic() + timeout
        while len(self.costs) < count:
            if time.monotonic() > end:
                said = "; ".join(f"{stage}: {status.text}" for stage, status in self.status.items())
                raise RuntimeError(
                    f"{len(self.costs)} chunks came within {timeout:g} s, expected {count}; "
                    f"{said or 'no stage says anything'}")
            self.spin(0.2)

    def _keep(self, message: Any) -> None:
        if message.source != self._source:
            return
        stages: dict[str, float] = {}
        for timing in message.timings:
            seconds = timing.duration.sec + timing.duration.nanosec * 1e-9
            stages[timing.stage] = stages.get(timing.stage, 0.0) + seconds
        stamp_ns = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        self.costs.append(ChunkCost(
            stages, sum(stages.values()), (time.time_ns() - stamp_ns) * 1e-9))

    def _keep_status(self, message: Any) -> None:
        self.status[message.stage] = message


def graph_processes(root: int) -> dict[str, int]:
    """Return {node's name: pid} of the nodes below a launch."""
    found = {}
    for pid in descendants(root):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        node = next((word for word in words if "/lib/omni_ros/" in word), None)
        if node is not None:
            found[Path(node).name] = pid
    return found


def holds(pid: int) -> Held | None:
    """Return what a process holds, None if it has gone.

    Memory is its own share (PSS) where the kernel tells, so that shared pages count once.
    """
    folder = Path(f"/proc/{pid}")
    try:
        files = len(os.listdir(folder / "fd"))
        threads = len(os.listdir(folder / "task"))
        text = (folder / "smaps_rollup").read_text()
    except OSError:
        return None
    kilobytes = next((int(line.split()[1]) for line in text.splitlines()
                      if line.startswith("Pss:")), 0)
    return Held(kilobytes, files, threads)


def sample(processes: dict[str, int], since: float) -> Sample:
    """Return what all of them hold now.

    :raises RuntimeError: one has gone.
    """
    taken = Sample(time.monotonic() - since)
    for name, pid in processes.items():
        held = holds(pid)
        if held is None:
            raise RuntimeError(f"{name} (pid {pid}) has ended")
        taken.processes[name] = held
    for path in rings(processes.values()):
        taken.rings += 1
        try:
            taken.ring_kb += path.stat().st_blocks // 2
        except OSError:
            pass
    return taken


def rings(pids: Iterable[int]) -> list[Path]:
    """Return the tensor rings in shared memory that processes made, also those that have ended."""
    return [path for pid in pids for path in sorted(SHARED_MEMORY.glob(f"{RING_PREFIX}{pid}.*"))]


def cpu_of(processes: dict[str, int]) -> dict[str, float]:
    """Return the CPU seconds that each has used so far."""
    return {name: cpu_seconds(pid) or 0.0 for name, pid in processes.items()}
