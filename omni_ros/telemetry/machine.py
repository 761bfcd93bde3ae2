# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What this machine is, read from /proc and /sys.

Every function takes the root of the file system as `root`, so that a test can show it any machine,
and leaves out (None, or an empty container) what the kernel does not tell; none raises.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

SYSTEM_ROOT = Path("/")

#: CPU features that decide which kernels run: /proc/cpuinfo's word and the usual name.
FEATURES = {
    # x86-64
    "fma": "fma",
    "f16c": "f16c",
    "avx2": "avx2",
    "avx_vnni": "avx-vnni",
    "avx512f": "avx512",
    "avx512_vnni": "avx512-vnni",
    "avx512_bf16": "avx512-bf16",
    "avx512_fp16": "avx512-fp16",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
    # aarch64
    "asimd": "neon",
    "asimdhp": "fp16",
    "asimddp": "dotprod",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "sve": "sve",
    "sve2": "sve2",
    # 32-bit Arm
    "neon": "neon",
}

#: cgroup v1 writes "no limit" as a huge number of bytes.
_NO_LIMIT = 1 << 60


def read_text(path: Path) -> str | None:
    """Return the stripped text of a file, or None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip(" \t\r\n\0")
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Return the integer that a file holds, or None if it holds none or cannot be read."""
    text = read_text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def cpu_model(root: Path = SYSTEM_ROOT) -> str:
    """Return the name of the CPU, or of the board where the kernel names only the board."""
    facts = dict(fields(read_text(root / "proc/cpuinfo")))
    board = read_text(root / "proc/device-tree/model")
    for name in (facts.get("model name"), facts.get("Model"), board, facts.get("Hardware")):
        if name:
            return name
    return platform.machine() or "unknown"


def cpu_features(root: Path = SYSTEM_ROOT) -> list[str]:
    """Return the features of note that the CPU reports, in the order of FEATURES."""
    facts = dict(fields(read_text(root / "proc/cpuinfo")))
    words = (facts.get("flags") or facts.get("Features") or "").split()
    return list(dict.fromkeys(name for word, name in FEATURES.items() if word in words))


def cpus_allowed() -> list[int]:
    """Return the cpus this process may run on."""
    try:
        return sorted(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return list(range(os.cpu_count() or 1))


def cgroup_cpus(root: Path = SYSTEM_ROOT) -> float | None:
    """Return the CPU quota of this process's cgroup in cores, None if there is none.

    A limit holds for all that lies below it, so the smallest on the way to the root counts.
    """
    quotas = []
    for folder in cgroup_folders("", root):
        words = (read_text(folder / "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
            quotas.append(int(words[0]) / int(words[1]))
    for folder in cgroup_folders("cpu", root):
        quota = read_number(folder / "cpu.cfs_quota_us")
        period = read_number(folder / "cpu.cfs_period_us")
        if quota is not None and quota > 0 and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def cores_usable(root: Path = SYSTEM_ROOT) -> float:
    """Return how many cores' worth of time this process can get: affinity and cgroup quota."""
    allowed = float(len(cpus_allowed()))
    quota = cgroup_cpus(root)
    return allowed if quota is None else min(allowed, quota)


def memory(root: Path = SYSTEM_ROOT) -> dict[str, int | None]:
    """Return `total`, `available` and `cgroup_limit` of the memory, in bytes.

    `available` is what is left to this process: the kernel's estimate, or what its cgroup still
    allows if that is less.
    """
    facts = dict(fields(read_text(root / "proc/meminfo")))
    total = _kilobytes(facts.get("MemTotal"))
    available = _kilobytes(facts.get("MemAvailable"))
    limits = list(_memory_limits(root))
    left = [limit - used for limit, used in limits]
    if left:
        available = min([*left, *([] if available is None else [available])])
        available = max(available, 0)
    limit = min((limit for limit, _ in limits), default=None)
    return {"total": total, "available": available, "cgroup_limit": limit}


def _memory_limits(root: Path) -> Iterator[tuple[int, int]]:
    for controller, limit_file, usage_file, cache_field in (
        ("", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        for folder in cgroup_folders(controller, root):
            limit = read_number(folder / limit_file)
            if limit is not None and limit < _NO_LIMIT:
                # What was read from files and not used since is given back before anyone is refused.
                cached = _counter(folder / "memory.stat", cache_field)
                yield limit, max((read_number(folder / usage_file) or 0) - cached, 0)


def _counter(path: Path, name: str) -> int:
    """Return one counter of a file of `name value` lines, 0 if it is not there."""
    for line in (read_text(path) or "").splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return 0


def cgroup_folders(controller: str, root: Path) -> Iterator[Path]:
    """Yield the folders of this process's cgroup of a controller, from its own up to the root.

    :param controller: the name of a v1 controller, "" for the v2 hierarchy.
    """
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        controllers = parts[1].split(",") if parts[1] else [""]
        if controller not in controllers:
            continue
        if controller:
            mounts = [root / "sys/fs/cgroup" / name for name in (parts[1], controller)]
        else:
            # Beside v1 hierarchies the v2 one has a folder of its own.
            mounts = [root / "sys/fs/cgroup/unified", root / "sys/fs/cgroup"]
        base = next((mount for mount in mounts if mount.is_dir()), None)
        if base is None:
            continue
        # In a container the path may be the host's, which is not visible: then its parents are.
        steps = [step for step in parts[2].split("/") if step and step != ".."]
        for length in range(len(steps), -1, -1):
            yield base.joinpath(*steps[:length])


def shared_memory(root: Path = SYSTEM_ROOT) -> dict[str, int] | None:
    """Return `total` and `free` of /dev/shm in bytes, None if there is none."""
    try:
        status = os.statvfs(root / "dev/shm")
    except OSError:
        return None
    return {
        "total": status.f_blocks * status.f_frsize,
        "free": status.f_bavail * status.f_frsize,
    }


def kernel(root: Path = SYSTEM_ROOT) -> dict[str, str]:
    """Return the kernel's `release` and its `preemption` model ("" if the kernel does not say)."""
    version = platform.version()
    if read_text(root / "sys/kernel/realtime") == "1" or "PREEMPT_RT" in version:
        preemption = "PREEMPT_RT"
    elif "PREEMPT" in version:
        preemption = "PREEMPT_DYNAMIC" if "PREEMPT_DYNAMIC" in version else "PREEMPT"
    else:
        preemption = ""
    return {"release": platform.release(), "preemption": preemption}


def operating_system(root: Path = SYSTEM_ROOT) -> str:
    """Return the distribution's name, for example "Debian GNU/Linux 12 (bookworm)"."""
    for line in (read_text(root / "etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.system()


def load_average() -> tuple[float, float, float] | None:
    """Return the load averages over 1, 5 and 15 minutes."""
    try:
        return os.getloadavg()
    except (AttributeError, OSError):
        return None


def fields(text: str | None) -> Iterator[tuple[str, str]]:
    """Yield `key: value` lines, last one first, so that in a dict the first one wins."""
    for line in reversed((text or "").splitlines()):
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), value.strip()


def _kilobytes(text: str | None) -> int | None:
    words = (text or "").split()
    return int(words[0]) * 1024 if words and words[0].isdigit() else None
