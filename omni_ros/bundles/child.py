# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Work in a process that may die of it."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

#: The child looks for modules where this process does, wherever it was started.
BOOTSTRAP = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).main(*sys.argv[4:], parent=int(sys.argv[3]))"
)


@dataclass(frozen=True)
class Outcome:
    """What a child left.

    :param events: what it told, in order.
    :param status: its exit status, the negative number of a signal that killed it, or None if it
        was killed here because its time was over.
    :param last_words: the last line that it wrote to its standard error.
    """

    events: list[dict[str, Any]]
    status: int | None
    last_words: str

    def why(self) -> str:
        """Say how it ended, to complete "its first load and run"."""
        if self.status is None:
            return "was not over in time"
        if self.status == -signal.SIGXCPU:
            return "was not over in the time that it may compute"
        if self.status < 0:
            return f"killed the process that tried it ({_signal_name(-self.status)})"
        return f"ended with status {self.status} ({self.last_words})"


def run_child(module: str, arguments: Sequence[object], timeout_s: float) -> Outcome:
    """Call `main(*arguments, parent=...)` of a module in a new process and wait for its end."""
    command = [sys.executable, "-c", BOOTSTRAP, json.dumps(sys.path), module, str(os.getpid())]
    child = subprocess.Popen(
        command + [str(argument) for argument in arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, errors = child.communicate(timeout=timeout_s)
        status: int | None = child.returncode
    except subprocess.TimeoutExpired:
        child.kill()
        out, errors = child.communicate()
        status = None
    except BaseException:
        # An interrupt: whoever handles it shall not find the child still at work.
        child.kill()
        child.wait()
        raise
    lines = errors.decode("utf-8", errors="replace").strip().splitlines() or ["no word"]
    return Outcome(list(_events(out)), status, lines[-1][:200])


@contextmanager
def telling() -> Iterator[Callable[..., None]]:
    """In the child: give a function that sends its keyword arguments to the parent as an event."""
    # Nothing but events may reach the parent's pipe, whatever prints.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as report:
        os.dup2(2, 1)

        def tell(**event: object) -> None:
            report.write(json.dumps(event) + "\n")
            report.flush()

        yield tell


def confine(parent: int, data_bytes: int | None = None) -> None:
    """In the child: write no core file, die with the parent, have no more than `data_bytes`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if data_bytes is not None:
        # Of the data only: mapped files and reserved address space cost nothing.
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = data_bytes if hard == resource.RLIM_INFINITY else min(data_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def _events(out: bytes) -> Iterator[dict[str, Any]]:
    for line in out.decode("utf-8", errors="replace").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            # Cut off by its death.
            continue


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
