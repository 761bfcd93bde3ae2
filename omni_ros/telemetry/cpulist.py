# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Lists of cpus as the kernel writes them: "0-3,6"."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: The kernel's own limit of cpus (NR_CPUS) on any architecture.
MAX_CPUS = 8192


def parse_cpus(text: str) -> tuple[int, ...]:
    """Cpus of a list as in "3", "2,3" or "2-3,6"; "" for none.

    :raises ValueError: it is written otherwise, or names a cpu above 8191.
    """
    cpus: set[int] = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last >= MAX_CPUS:
            raise ValueError(f"{text!r} is no list of cpus: write them as '3', '2,3' or '2-3,6'")
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def format_cpus(cpus: Iterable[int]) -> str:
    """Write cpus as the kernel does: "0-3,6"."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
