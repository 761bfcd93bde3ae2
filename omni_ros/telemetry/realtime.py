# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the operating system permits a process with deadlines, and how to ask for it.

`permissions` only looks. The other functions ask, never raise, and return what was asked and what
the operating system answered, so that a refusal is shown to the user and not lost in a log. None is
needed to run: they lower the tail of the tick's lateness.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import resource
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from omni_ros.telemetry.machine import SYSTEM_ROOT, cpus_allowed, read_text

#: ros2_control runs its own loop at this priority.
DEFAULT_PRIORITY = 50

_MCL_CURRENT = 1
_MCL_FUTURE = 2
_CAP_IPC_LOCK = 14

#: Run in a child: asking is the only sure test, since capabilities, limits, cgroups and seccomp
#: all have a say, and a child leaves this process's own scheduling as it was.
_TRY_FIFO = """
import os, sys
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(sys.argv[1])))
except (OSError, AttributeError) as error:
    sys.exit(f"{error}")
"""


@dataclass(frozen=True)
class Answer:
    """What was asked of the operating system and what it answered.

    :param asked: for example "SCHED_FIFO priority 50".
    :param granted: whether it now holds.
    :param answer: "granted", or the refusal with what to change.
    """

    asked: str
    granted: bool
    answer: str

    def __str__(self) -> str:
        return f"{self.asked}: {self.answer}"


@dataclass(frozen=True)
class Permissions:
    """What a process started from here may ask for.

    Limits are (soft, hard); None stands for unlimited. `memlock` is in bytes.
    """

    rtprio: tuple[int | None, int | None]
    memlock: tuple[int | None, int | None]
    may_lock_all: bool
    fifo: Answer
    cpus: tuple[int, ...]
    rt_share: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return the same as plain types, ready for JSON."""
        return asdict(self)


def permissions(priority: int = DEFAULT_PRIORITY) -> Permissions:
    """Find out what is permitted here. Takes the time of starting one Python process."""
    return Permissions(
        rtprio=_limit(getattr(resource, "RLIMIT_RTPRIO", None)),
        memlock=_limit(resource.RLIMIT_MEMLOCK),
        may_lock_all=_may_lock_all(),
        fifo=try_fifo(priority),
        cpus=tuple(cpus_allowed()),
        rt_share=_rt_share(),
    )


def try_fifo(priority: int = DEFAULT_PRIORITY) -> Answer:
    """Ask for SCHED_FIFO in a child that ends at once."""
    asked = f"SCHED_FIFO priority {priority}"
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _TRY_FIFO, str(priority)],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Answer(asked, False, f"could not be tried: {error}")
    if done.returncode == 0:
        return Answer(asked, True, "granted")
    reason = done.stderr.strip().splitlines()[-1:] or ["the child was killed"]
    return Answer(asked, False, f"refused: {reason[0]}; {FIFO_ADVICE}")


FIFO_ADVICE = (
    "allow it with a line '<user> - rtprio 98' in /etc/security/limits.d/realtime.conf and log in "
    "again (Docker: --cap-add=SYS_NICE --ulimit rtprio=98)"
)
MEMLOCK_ADVICE = (
    "allow it with a line '<user> - memlock unlimited' in /etc/security/limits.d/realtime.conf and "
    "log in again (Docker: --ulimit memlock=-1)"
)


def set_affinity(cpus: Iterable[int]) -> Answer:
    """Bind the calling thread, and those it starts from now on, to these cpus."""
    wanted = sorted(set(cpus))
    asked = f"affinity to cpus {wanted}"
    try:
        os.sched_setaffinity(0, wanted)
    except (OSError, ValueError, OverflowError, TypeError, AttributeError) as error:
        return Answer(asked, False, f"refused: {error}; choose from {cpus_allowed()}")
    got = cpus_allowed()
    if got != wanted:
        return Answer(asked, False, f"granted only in part: {got}")
    return Answer(asked, True, "granted")


def set_fifo(priority: int = DEFAULT_PRIORITY) -> Answer:
    """Schedule the calling thread by SCHED_FIFO. Call it on the thread that has the deadline.

    Processes it starts fall back to the ordinary policy, so a busy child cannot starve the machine.
    """
    asked = f"SCHED_FIFO priority {priority}"
    try:
        policy = os.SCHED_FIFO | getattr(os, "SCHED_RESET_ON_FORK", 0)
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except (OSError, ValueError, OverflowError, TypeError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EINVAL:
            low = os.sched_get_priority_min(os.SCHED_FIFO)
            high = os.sched_get_priority_max(os.SCHED_FIFO)
            return Answer(asked, False, f"refused: choose a priority from {low} to {high}")
        return Answer(asked, False, f"refused: {error}; {FIFO_ADVICE}")
    return Answer(asked, True, "granted")


def set_nice(nice: int) -> Answer:
    """Set the priority of the calling thread, and of those it starts from now on, from -20 to 19."""
    asked = f"nice {nice}"
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)  # on Linux 0 is the thread, not the process
    except (OSError, OverflowError, TypeError, AttributeError) as error:
        advice = "only root and holders of CAP_SYS_NICE may go below what a thread has"
        return Answer(asked, False, f"refused: {error}; {advice}")
    got = os.getpriority(os.PRIO_PROCESS, 0)
    if got != nice:
        return Answer(asked, False, f"granted only in part: nice {got}")
    return Answer(asked, True, "granted")


def lock_memory() -> Answer:
    """Lock this process's pages into memory. Call it after warm-up, when all is allocated.

    Pages still to come are locked too only where no limit can make that fail: with a finite
    RLIMIT_MEMLOCK a later allocation would end in MemoryError in the middle of a tick.
    """
    _raise_soft_memlock()
    whole = _may_lock_all()
    asked = "memory locked, now and later" if whole else "memory locked as it is now"
    flags = _MCL_CURRENT | _MCL_FUTURE if whole else _MCL_CURRENT
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mlockall(flags) != 0
    except (OSError, AttributeError) as error:
        return Answer(asked, False, f"could not be tried: {error}")
    if failed:
        code = ctypes.get_errno()
        have = _limit(resource.RLIMIT_MEMLOCK)[0]
        limit = "unlimited" if have is None else f"{have / (1 << 20):.1f} MiB"
        reason = f"{os.strerror(code)}, RLIMIT_MEMLOCK is {limit}"
        return Answer(asked, False, f"refused: {reason}; {MEMLOCK_ADVICE}")
    return Answer(asked, True, f"granted, {_locked_text()}")


def freeze_gc() -> Answer:
    """Collect once, set all that is alive aside and stop the collector. Call it after warm-up.

    Reference counting goes on; only cycles made from now on are never freed, so whoever calls this
    must not make any in its loop.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    return Answer(
        "garbage collector stopped", True, f"granted, {gc.get_freeze_count()} objects frozen"
    )


def _limit(kind: int | None) -> tuple[int | None, int | None]:
    if kind is None:
        return (0, 0)
    soft, hard = (
        None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(kind)
    )
    return (soft, hard)


def _raise_soft_memlock() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
        except (OSError, ValueError):
            pass  # the lower limit then shows in the answer of lock_memory


def _may_lock_all() -> bool:
    """Return whether no limit stands against locking all memory, with the hard limit in use."""
    if _limit(resource.RLIMIT_MEMLOCK)[1] is None:
        return True
    return _has_capability(_CAP_IPC_LOCK)


def _status_field(name: str) -> str:
    for line in (read_text(SYSTEM_ROOT / "proc/self/status") or "").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    return ""


def _has_capability(bit: int) -> bool:
    try:
        return bool(int(_status_field("CapEff"), 16) >> bit & 1)
    except ValueError:
        return False


def _locked_text() -> str:
    words = _status_field("VmLck").split()
    return f"{int(words[0]) / 1024:.0f} MiB" if words and words[0].isdigit() else "size not told"


def _rt_share() -> float | None:
    """Return the share of each period that the kernel lets real-time tasks use, None if unknown."""
    runtime = read_text(SYSTEM_ROOT / "proc/sys/kernel/sched_rt_runtime_us")
    period = read_text(SYSTEM_ROOT / "proc/sys/kernel/sched_rt_period_us")
    try:
        if runtime is None or period is None:
            return None
        return 1.0 if int(runtime) < 0 else int(runtime) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
