# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The processors and the memory of a machine, as far as placing work on it needs them.

`read_hardware` reads /proc and /sys below any root, so that a test can show it any machine; it
never raises, and `missing` says what the kernel did not tell. A Hardware can be recorded as a
profile and loaded elsewhere (hardware_profile.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from omni_ros.telemetry import machine
from omni_ros.telemetry.cpulist import MAX_CPUS, format_cpus, parse_cpus
from omni_ros.telemetry.machine import SYSTEM_ROOT, read_number, read_text

#: A cpu is fast if it reaches this share of the fastest one's `cpu_capacity`: prime and big cores
#: of a phone's processor do, little ones (a quarter to a half) do not.
FAST_CAPACITY = 0.7
#: The same by top frequency, where capacities are not told or all alike: an A55 has three quarters
#: of the clock of the A76 beside it, favoured cores of one kind differ by a few per cent.
FAST_FREQUENCY = 0.85

_CPU_FOLDER = "sys/devices/system/cpu"
_SIZE = re.compile(r"(\d{1,9})([KMG]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Cpu:
    """One logical processor that is online.

    :param number: the kernel's number.
    :param core: the lowest number among the hardware threads of its core.
    :param package: the kernel's package; on some Arm kernels the cluster.
    :param cluster: the lowest number among the cpus that share its cluster or last cache.
    :param capacity: the kernel's `cpu_capacity`, 1024 for the fastest; None if not told.
    :param max_khz: highest frequency, kHz; None if not told.
    :param efficient: whether an x86 kernel lists it among the efficient cores.
    """

    number: int
    core: int
    package: int = 0
    cluster: int = 0
    capacity: int | None = None
    max_khz: int | None = None
    efficient: bool = False


@dataclass(frozen=True)
class Cache:
    """A cache and the cpus that share it. `kind` is Data, Instruction or Unified."""

    level: int
    kind: str
    bytes: int
    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Hardware:
    """What `read_hardware` found. Memory in bytes, None where it is not told.

    :param cpus: the cpus that are online, by number.
    :param possible: the cpus there can be; more than online where some are switched off.
    :param allowed: the cpus this process may run on (affinity).
    :param cpuset: the cpus its cgroup allows, the isolated ones included.
    :param isolated: the cpus that the kernel's balancing leaves alone (isolcpus).
    :param quota: cores' worth of time that its cgroup may use, None if unlimited.
    :param memory_limit: the smallest limit of its cgroups.
    :param missing: what could not be found out, in words.
    :param source: "/" for this machine, or the root or profile read.
    """

    model: str
    cpus: tuple[Cpu, ...]
    possible: tuple[int, ...]
    allowed: tuple[int, ...]
    cpuset: tuple[int, ...]
    isolated: tuple[int, ...] = ()
    quota: float | None = None
    caches: tuple[Cache, ...] = ()
    memory_total: int | None = None
    memory_available: int | None = None
    memory_limit: int | None = None
    missing: tuple[str, ...] = ()
    source: str = "/"

    @cached_property
    def by_number(self) -> dict[int, Cpu]:
        """The cpus that are online, by their numbers."""
        return {cpu.number: cpu for cpu in self.cpus}

    @cached_property
    def usable(self) -> tuple[int, ...]:
        """Online cpus this process may use and the kernel balances."""
        usable = set(self.allowed) - set(self.isolated)
        # All of them isolated: then there is nothing else to run on.
        return tuple(n for n in self.by_number if n in (usable or set(self.allowed)))

    @cached_property
    def speed_from(self) -> str:
        """What the speeds come from: "capacity", "frequency" or "" (all alike or not told)."""
        for name, field in (("capacity", "capacity"), ("frequency", "max_khz")):
            values = {getattr(cpu, field) for cpu in self.cpus}
            if None not in values and len(values) > 1:
                return name
        return ""

    def speed(self, number: int) -> float:
        """Speed of a cpu, 1.0 for the fastest one that is online."""
        if not self.speed_from:
            return 1.0
        field = "capacity" if self.speed_from == "capacity" else "max_khz"
        return getattr(self.by_number[number], field) / max(getattr(c, field) for c in self.cpus)

    def is_fast(self, number: int) -> bool:
        """Whether a cpu is of the fast kind."""
        if any(c.efficient for c in self.cpus) and not all(c.efficient for c in self.cpus):
            return not self.by_number[number].efficient
        return self.speed(number) >= (
            FAST_CAPACITY if self.speed_from == "capacity" else FAST_FREQUENCY)

    def cores(self, numbers: Iterable[int]) -> dict[int, tuple[int, ...]]:
        """Group cpus by core: {number of the core: its cpus among these}."""
        groups: dict[int, list[int]] = {}
        for number in sorted(numbers):
            groups.setdefault(self.by_number[number].core, []).append(number)
        return {core: tuple(cpus) for core, cpus in groups.items()}

    def siblings(self, number: int) -> tuple[int, ...]:
        """The cpus of the same core, this one included."""
        return self.cores(self.by_number)[self.by_number[number].core]

    def summary(self) -> str:
        """One line: cpus, kinds, limits."""
        cores = self.cores(self.by_number)
        text = f"{len(cores)} core{'' if len(cores) == 1 else 's'}"
        if len(cores) < len(self.cpus):
            text += f" with {len(self.cpus)} hardware threads"
        fast = self.cores(n for n in self.by_number if self.is_fast(n))
        if len(fast) < len(cores):
            text += f" ({len(fast)} fast, {len(cores) - len(fast)} slow)"
        if len(self.possible) > len(self.cpus):
            text += f", {len(self.possible) - len(self.cpus)} cpus switched off"
        if set(self.by_number) - set(self.isolated) - set(self.allowed):
            text += f", only cpus {format_cpus(self.allowed)} allowed"
        if self.isolated:
            text += f", cpus {format_cpus(self.isolated)} isolated"
        if self.quota is not None:
            text += f", quota {self.quota:g} cores"
        return text


def read_hardware(root: Path = SYSTEM_ROOT) -> Hardware:
    """Read what the kernel tells of this machine and of the limits of this process. Never raises.

    The affinity is that of the process's first thread, so read before binding that one
    (`this_machine`).
    """
    missing: list[str] = []
    status = dict(machine.fields(read_text(root / "proc/self/status")))
    allowed = _cpus(status.get("Cpus_allowed_list"))
    online = _cpus(read_text(root / _CPU_FOLDER / "online"))
    if not online:
        missing.append("which cpus are online")
        online = allowed or tuple(range(max(_processors(root), 1)))
    if not allowed or not set(allowed) & set(online):
        missing.append("the affinity of this process")
        allowed = online
    possible = _cpus(read_text(root / _CPU_FOLDER / "possible"))
    caches = _caches(root, online)
    cpus = _topology(root, online, caches, missing)
    memory = machine.memory(root)
    if memory["total"] is None:
        missing.append("the memory")
    return Hardware(
        model=machine.cpu_model(root),
        cpus=cpus,
        possible=tuple(sorted({*possible, *online})),
        allowed=tuple(n for n in allowed if n in online),
        cpuset=_cpuset(root, online),
        isolated=tuple(n for n in _cpus(read_text(root / _CPU_FOLDER / "isolated")) if n in online),
        quota=machine.cgroup_cpus(root),
        caches=caches,
        memory_total=memory["total"],
        memory_available=memory["available"],
        memory_limit=memory["cgroup_limit"],
        missing=tuple(missing),
        source=str(root),
    )


@cache
def this_machine() -> Hardware:
    """Read this machine, once a process: threads bound later would look like outside limits."""
    return read_hardware()


def _cpus(text: str | None) -> tuple[int, ...]:
    try:
        return parse_cpus(text or "")
    except ValueError:
        return ()


def _processors(root: Path) -> int:
    lines = (read_text(root / "proc/cpuinfo") or "").splitlines()
    return min(sum(line.startswith("processor") for line in lines), MAX_CPUS)


def _topology(root: Path, online: tuple[int, ...], caches: tuple[Cache, ...],
              missing: list[str]) -> tuple[Cpu, ...]:
    efficient = set(_cpus(read_text(root / "sys/devices/cpu_atom/cpus")))
    packages = {n: read_number(root / _CPU_FOLDER / f"cpu{n}/topology/physical_package_id")
                for n in online}
    cpus, untold = [], []
    for number in online:
        folder = root / _CPU_FOLDER / f"cpu{number}"
        threads = _cpus(read_text(folder / "topology/core_cpus_list"))
        threads = threads or _cpus(read_text(folder / "topology/thread_siblings_list"))
        if not threads:
            untold.append(number)
        siblings = {number, *threads} & set(online)
        capacity = read_number(folder / "cpu_capacity")
        max_khz = read_number(folder / "cpufreq/cpuinfo_max_freq")
        cpus.append(Cpu(
            number=number,
            core=min(siblings),
            package=packages[number] or 0,
            cluster=_cluster(folder, number, siblings, packages, caches, set(online)),
            capacity=capacity if capacity and capacity > 0 else None,
            max_khz=max_khz if max_khz and max_khz > 0 else None,
            efficient=number in efficient,
        ))  # fmt: skip
    if untold:
        missing.append(f"which hardware threads share a core (cpus {format_cpus(untold)})")
    if all(cpu.capacity is None for cpu in cpus) and any(cpu.max_khz is None for cpu in cpus):
        missing.append("how fast the cpus are: taken as alike")
    if not caches:
        missing.append("the caches")
    return tuple(cpus)


def _cluster(folder: Path, number: int, siblings: set[int], packages: dict[int, int | None],
             caches: tuple[Cache, ...], online: set[int]) -> int:
    """The cluster by the kernel's word; else by package (Arm before Linux 6.1); else by cache."""
    told = {number, *_cpus(read_text(folder / "topology/cluster_cpus_list"))} & online
    if told > siblings:  # a kernel that knows no clusters makes each core one of its own
        return min(told)
    same = {n for n, package in packages.items() if package == packages[number]}
    if packages[number] is None or len(same) == len(packages):
        shared = [cache for cache in caches if number in cache.cpus and cache.kind == "Unified"]
        same = set(max(shared, key=lambda cache: cache.level).cpus) if shared else same
    return min(same & online or {number})


def _caches(root: Path, online: tuple[int, ...]) -> tuple[Cache, ...]:
    found = set()
    for number in online:
        for index in range(8):
            folder = root / _CPU_FOLDER / f"cpu{number}/cache/index{index}"
            level = read_number(folder / "level")
            size = _SIZE.fullmatch(read_text(folder / "size") or "")
            if level is None or size is None:
                continue
            shared = _cpus(read_text(folder / "shared_cpu_list")) or (number,)
            shared = tuple(n for n in shared if n in online)
            kind = read_text(folder / "type") or "Unified"
            found.add(Cache(level, kind, int(size[1]) * _UNITS[size[2]], shared))
    return tuple(sorted(found, key=lambda cache: (cache.level, cache.kind, cache.cpus)))


def _cpuset(root: Path, online: tuple[int, ...]) -> tuple[int, ...]:
    for controller, names in (
        ("cpuset", ("cpuset.effective_cpus", "cpuset.cpus", "cpus")),
        ("", ("cpuset.cpus.effective",)),
    ):
        for folder in machine.cgroup_folders(controller, root):
            for name in names:
                cpus = tuple(n for n in _cpus(read_text(folder / name)) if n in online)
                if cpus:
                    return cpus
    return online
