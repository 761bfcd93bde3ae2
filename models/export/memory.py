# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How much memory an export took at its worst, so that the next one can be planned."""

from __future__ import annotations

import resource
from pathlib import Path


class Peak:
    """The most that was resident since it was made, in this process and in a child beside it."""

    def __init__(self) -> None:
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM
        except OSError:
            pass  # then it counts what came before, too
        self._beside = 0

    def of_children(self) -> None:
        """Count children that have ended: the largest of them at its worst, beside what is here."""
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        self._beside = max(self._beside, resident("VmRSS") + largest)

    @property
    def bytes(self) -> int:
        """Bytes until now."""
        return max(resident("VmHWM"), self._beside)


def resident(field: str) -> int:
    """Return a field of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0
