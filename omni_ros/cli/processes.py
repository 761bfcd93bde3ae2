# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Processes around a measurement: find one in a tree, read its CPU time, keep cores busy."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

#: Burns Python until whoever started it is gone, so that a crash leaves no busy process behind.
_BURN = """
import os, sys
parent = int(sys.argv[1])
while os.getppid() == parent:
    sum(i * i for i in range(100000))
"""


PR_SET_PDEATHSIG = 1  # linux/prctl.h


def group_that_ends_with_parent() -> Callable[[], None]:
    """Return a `preexec_fn`: the child leads a process group and gets SIGTERM when this process dies.

    A process that is killed outright cannot end its children, and a graph that is left behind would
    meet the next one, two players on one arm. Call it in the thread that starts the child, which has
    to live as long: for the kernel the parent is the thread.
    """
    parent = os.getpid()
    libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None  # not between fork and exec

    def prepare() -> None:
        os.setpgrp()
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)  # it died before the kernel was asked

    return prepare


def parents(proc: Path = Path("/proc")) -> dict[int, int]:
    """Return {pid: parent pid} of all processes that can be seen."""
    tree = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            fields = stat_fields(int(folder.name), proc)
            if fields:
                tree[int(folder.name)] = int(fields[1])
    return tree


def stat_fields(pid: int, proc: Path = Path("/proc")) -> list[str]:
    """Return /proc/<pid>/stat from the state (index 0) on, empty if the process is gone."""
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The second field is the command in brackets, which may itself hold brackets and spaces.
    return text.rpartition(")")[2].split()


def descendants(root: int, proc: Path = Path("/proc")) -> list[int]:
    """Return the pids of all processes that come from `root`, without itself, parents first."""
    tree = parents(proc)
    found = [root]
    for pid in found:
        found += sorted(child for child, parent in tree.items() if parent == pid)
    return found[1:]


def find_descendant(root: int, word: str, proc: Path = Path("/proc")) -> int | None:
    """Return the deepest process below `root` with a command-line word that ends with `word`.

    The deepest: a node may have been started through a shell that names it too.
    """
    match = None
    for pid in descendants(root, proc):
        try:
            line = (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if any(part == word or part.endswith(f"/{word}") for part in line.split("\0")):
            match = pid
    return match


def cpu_seconds(pid: int, proc: Path = Path("/proc")) -> float | None:
    """Return the user and system time a process has used, None if it is gone."""
    fields = stat_fields(pid, proc)
    if len(fields) < 13:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def busy_processes(count: int) -> Iterator[list[int]]:
    """Keep `count` processes burning Python for the length of the block; yields their pids."""
    command = [sys.executable, "-I", "-S", "-c", _BURN, str(os.getpid())]
    # Their own process groups: Ctrl-C is for the measurement, which ends them itself.
    started = [subprocess.Popen(command, preexec_fn=os.setpgrp) for _ in range(count)]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def stop_tree(process: subprocess.Popen, patience: float = 15.0) -> None:
    """End a process and all that comes from it: interrupt, wait, then kill what is left."""
    below = descendants(process.pid)
    if process.poll() is None:
        _interrupt(process)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            below = [*below, *descendants(process.pid)]
            process.kill()
            process.wait()
    deadline = time.monotonic() + 2.0
    while any(map(_alive, below)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in set(below):
        if _alive(pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it ended by itself in between


def _interrupt(process: subprocess.Popen) -> None:
    """Interrupt as Ctrl-C in a terminal does: the whole group, if the process leads one.

    `ros2 launch` takes it that its nodes heard the Ctrl-C too, and waits five seconds before it
    tells them itself.
    """
    try:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
    except ProcessLookupError:
        pass  # it ended by itself in between


def _alive(pid: int) -> bool:
    fields = stat_fields(pid)
    return bool(fields) and fields[0] != "Z"
