# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a bundle fits into what this process can still get, said before anything is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omni_ros.bundles.errors import MemoryShortage
from omni_ros.bundles.layout import Manifest, Memory
from omni_ros.telemetry import machine

_MB = 1e6


def memory_left(root: Path = machine.SYSTEM_ROOT) -> int | None:
    """Return the bytes this process can still get: MemAvailable, or less where its cgroup says so.

    None if the kernel does not tell.
    """
    return machine.memory(root)["available"]


def memory_of(manifest: Manifest, programs: Sequence[str] | None = None) -> Memory:
    """Return what some programs of a bundle take; None for all."""
    if programs is None:
        return manifest.memory
    return Memory.of({name: manifest.programs[name] for name in programs})


def check_memory(
    manifest: Manifest, *, programs: Sequence[str] | None = None, reserve: int = 0,
    root: Path = machine.SYSTEM_ROOT,
) -> None:
    """Refuse a bundle that needs more memory than there is.

    :param programs: those that will be loaded; None for all.
    :param reserve: bytes that shall be left over.
    :raises MemoryShortage: with need and have in MB, and what the need consists of.
    """
    have = memory_left(root)
    parts = memory_of(manifest, programs)
    need = parts.total + reserve
    if have is None or need <= have:
        return
    limit = machine.memory(root)["cgroup_limit"]
    bound = "" if limit is None else f", in a cgroup limited to {limit / _MB:.0f} MB"
    which = "" if programs is None else f"{', '.join(programs)} of "
    kept = f" and {reserve / _MB:.0f} MB to be left over" if reserve else ""
    raise MemoryShortage(
        f"{which}bundle {manifest.name} needs {need / _MB:.0f} MB, this process can have "
        f"{have / _MB:.0f} MB{bound}: weights {parts.constants / _MB:.0f} MB, arenas "
        f"{parts.arenas / _MB:.0f} MB, workspaces {parts.workspaces / _MB:.0f} MB, inputs and "
        f"outputs {parts.inputs_outputs / _MB:.0f} MB{kept}. Free memory, raise the limit, or "
        "export with --recipe int8"
    )
