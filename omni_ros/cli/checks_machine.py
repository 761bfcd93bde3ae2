# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Findings on the machine itself: processor, memory, real-time permissions."""

from __future__ import annotations

import os
from collections.abc import Iterator

from omni_ros.cli.report import NOTE, OK, PROBLEM, Finding
from omni_ros.telemetry import machine as facts
from omni_ros.telemetry import realtime as rt
from omni_ros.telemetry.hardware import Hardware, read_hardware
from omni_ros.telemetry.placement import SEPARATE, TTS, place

_MIB = 1 << 20
_GIB = 1 << 30

#: Docker gives 64 MiB; the DDS segments of a few nodes and a ring of camera images exceed it.
SMALL_SHM = 256 * _MIB

#: The tick needs a core's worth of time to itself beside inference, rendering and drivers.
FEW_CORES = 2

LITTLE_MEMORY = 1 * _GIB


def machine() -> Iterator[Finding]:
    """Yield findings on processor, cores, memory and shared memory."""
    section = "Machine"
    kernel = facts.kernel()
    system = f"{facts.operating_system()}, kernel {kernel['release']} {kernel['preemption']}"
    yield Finding(section, "system", OK, system.strip())

    features = ", ".join(facts.cpu_features()) or "none of note"
    yield Finding(section, "processor", OK, f"{facts.cpu_model()}; {features}")
    yield _cores(section)
    yield _memory(section)
    yield _shared_memory(section)


def _cores(section: str) -> Finding:
    usable, online = facts.cores_usable(), os.cpu_count() or 1
    allowed, quota = facts.cpus_allowed(), facts.cgroup_cpus()
    fact = f"{usable:g} usable of {online}"
    if len(allowed) < online:
        fact += f"; affinity to cpus {', '.join(map(str, allowed))}"
    if quota is not None:
        fact += f"; cgroup quota of {quota:g}"
    if usable < FEW_CORES:
        advice = "fewer than 2: expect late ticks while a policy computes; allow more cores"
        return Finding(section, "cores", NOTE, fact, advice)
    return Finding(section, "cores", OK, fact)


def _memory(section: str) -> Finding:
    memory = facts.memory()
    total, available, limit = memory["total"], memory["available"], memory["cgroup_limit"]
    if total is None or available is None:
        return Finding(section, "memory", NOTE, "the kernel does not tell")
    fact = f"{available / _GIB:.1f} GiB available of {total / _GIB:.1f} GiB"
    if limit is not None:
        fact += f"; cgroup limit {limit / _GIB:.1f} GiB"
    if available < LITTLE_MEMORY:
        return Finding(section, "memory", NOTE, fact, "close other programs or raise the limit")
    return Finding(section, "memory", OK, fact)


def _shared_memory(section: str) -> Finding:
    size = facts.shared_memory()
    subject = "/dev/shm"
    if size is None:
        advice = "mount it: sudo mount -t tmpfs -o size=1g tmpfs /dev/shm"
        return Finding(section, subject, PROBLEM, "not there: nodes cannot share tensors", advice)
    fact = f"{_size(size['free'])} free of {_size(size['total'])}"
    if size["total"] < SMALL_SHM:
        advice = "small for images and tensors; Docker: --shm-size=1g, else "
        advice += "sudo mount -o remount,size=1g /dev/shm"
        return Finding(section, subject, NOTE, fact, advice)
    return Finding(section, subject, OK, fact)


def realtime() -> Iterator[Finding]:
    """Yield findings on what a process with deadlines may ask for."""
    section = "Real time (optional)"
    allowed = rt.permissions()
    mark = OK if allowed.fifo.granted else NOTE
    answer, _, advice = allowed.fifo.answer.partition("; ")
    rtprio = "unlimited" if allowed.rtprio[0] is None else str(allowed.rtprio[0])
    fact = f"priority {rt.DEFAULT_PRIORITY} {answer} when tried (RLIMIT_RTPRIO {rtprio})"
    yield Finding(section, "SCHED_FIFO", mark, fact, advice)

    if allowed.rt_share is not None:
        share = f"real-time tasks may use {allowed.rt_share:.0%} of a core"
        yield Finding(section, "throttling", OK, share)

    limit = allowed.memlock[1]
    fact = "RLIMIT_MEMLOCK " + ("unlimited" if limit is None else _size(limit))
    if allowed.may_lock_all:
        fact = f"all memory can be locked ({fact})"
        yield Finding(section, "mlockall", OK, fact)
    else:
        yield Finding(section, "mlockall", NOTE, fact, rt.MEMLOCK_ADVICE)

    kernel = facts.kernel()["preemption"]
    if kernel == "PREEMPT_RT":
        yield Finding(section, "kernel", OK, "PREEMPT_RT")
    else:
        fact = f"{kernel or 'not preemptible'}, not PREEMPT_RT: a tick can be late by milliseconds"
        yield Finding(section, "kernel", NOTE, fact, "`omni bench player` shows by how much")


def placement(hardware: Hardware | None = None) -> Iterator[Finding]:
    """Yield findings on which cpus the player and the policy get.

    :param hardware: a recorded profile; this machine if None.
    """
    section = "CPU placement"
    hardware = read_hardware() if hardware is None else hardware
    missing = f"; not told: {'; '.join(hardware.missing)}" if hardware.missing else ""
    fact = f"{hardware.model}: {hardware.summary()}{missing}"
    yield Finding(section, "hardware", OK, fact)

    chosen = place(hardware, (*SEPARATE, TTS))
    yield Finding(section, "player", OK, str(chosen.player))
    stages = str(chosen[SEPARATE[0]])
    yield Finding(section, "policy stages", OK, f"{stages} each, in turns")
    yield Finding(section, "speech", OK, str(chosen[TTS]))
    yield Finding(section, "why", OK, chosen.why)
    for note in chosen.notes:
        yield Finding(section, "note", NOTE, note)


def _size(number: int) -> str:
    if number >= _GIB:
        return f"{number / _GIB:.1f} GiB"
    return f"{number / _MIB:.0f} MiB"
