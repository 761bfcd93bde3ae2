# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a program takes in memory, measured when it is exported.

A delegate's packed weights and its workspace are in no plan that the file states, so a process of
its own loads and runs the program and looks at its resident memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omni_ros.bundles.child import confine, run_child, telling
from omni_ros.bundles.errors import BundleError
from omni_ros.programs import Program, native, set_threads, zeros

#: Enough for every buffer to have been touched.
RUNS = 5


@dataclass(frozen=True)
class Footprint:
    """Bytes of a program.

    :param constants_bytes: resident growth by loading, without arenas, inputs and outputs.
    :param workspace_bytes: resident growth by the first runs.
    :param arenas: planned bytes.
    :param peak_bytes: the most that was resident at any time, above what was before the load.
    """

    constants_bytes: int
    workspace_bytes: int
    arenas: tuple[int, ...]
    peak_bytes: int


def measure(path: str | Path, method: str = "forward", *, threads: int = 1) -> Footprint:
    """Load and run a program on zeros in a new process and measure.

    :raises BundleError: it cannot be loaded or run.
    :raises ImportError: what is needed to run programs is not installed.
    """
    native.library()
    outcome = run_child(__name__, (path, method, threads), 3600.0)
    for event in outcome.events:
        if "error" in event:
            raise BundleError(event["error"])
        if outcome.status == 0:
            return Footprint(**{**event, "arenas": tuple(event["arenas"])})
    raise BundleError(f"{path}: its first load and run {outcome.why()}")


def main(path: str, method: str, threads: str, *, parent: int) -> None:
    """Be the child."""
    confine(parent)
    with telling() as tell:
        try:
            set_threads(int(threads))
            before = _resident("VmRSS")
            program = Program(path, method)
            for index, spec in enumerate(program.inputs):
                program.bind(index, zeros(spec.shape, spec.dtype))
            loaded = _resident("VmRSS")
            for _ in range(RUNS):
                program.run()
            warm = _resident("VmRSS")
        except ValueError as error:
            tell(error=" ".join(str(error).split()))
            return
        planned = sum(program.arenas)
        tensors = sum(spec.nbytes for spec in (*program.inputs, *program.outputs))
        tell(
            constants_bytes=max(loaded - before - planned - tensors, 0),
            workspace_bytes=max(warm - loaded, 0),
            arenas=program.arenas,
            peak_bytes=max(_resident("VmHWM") - before, 0),
        )


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0
