# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""First load and golden vectors, in a child process that may die of them.

ExecuTorch checks a file's structure, not all that is in it: a file made by someone who also signed
the manifest can still crash it. The child has no more memory than the manifest asks for and a slack,
writes no core file, and dies with its parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from omni_ros.bundles.bundle import Bundle, load_program
from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.golden import check_golden, tolerance
from omni_ros.bundles.manifest import read_manifest
from omni_ros.programs import get_threads, native, set_threads

#: For the interpreter, numpy, the golden vectors and one copy of a program while it is packed.
SLACK_BYTES = 1 << 30

#: The child looks for modules where this process does, wherever it was started.
_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from omni_ros.bundles.trial import main; main(*sys.argv[2:])"
)


def try_programs(bundle: Bundle, *, timeout_s: float = 300.0) -> dict[str, float]:
    """Load every program of a bundle and run its golden vector, in a throw-away process.

    :param timeout_s: after that the child is killed and the bundle refused.
    :return: for each program the largest difference from its golden vector.
    :raises BundleError: a program does not load, is not what the manifest says, answers differently,
        takes too long, or killed the child; the file is named.
    :raises ImportError: what is needed to run programs is not installed.
    """
    # Found or built here, so that the child's time goes to the programs alone.
    native.library()
    limit = bundle.manifest.memory.total + SLACK_BYTES
    command = [sys.executable, "-c", _BOOTSTRAP, json.dumps(sys.path)]
    command += [str(bundle.root), str(limit), str(get_threads()), str(os.getpid())]
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, errors = child.communicate(timeout=timeout_s)
        timed_out = False
    except subprocess.TimeoutExpired:
        child.kill()
        out, errors = child.communicate()
        timed_out = True
    return _judge(bundle, child.returncode, timeout_s if timed_out else None, out, errors)


def _judge(
    bundle: Bundle, status: int, timeout_s: float | None, out: bytes, errors: bytes
) -> dict[str, float]:
    results: dict[str, float] = {}
    current = None
    for line in out.decode("utf-8", errors="replace").splitlines():
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        if "error" in event:
            raise BundleError(event["error"])
        if "begin" in event:
            current = event["begin"]
        if "done" in event:
            results[event["done"]] = event["difference"]
    if status == 0 and not timeout_s and set(results) == set(bundle.manifest.programs):
        return results
    entry = bundle.manifest.programs.get(current or "")
    path = bundle.root / entry.file if entry else bundle.root
    if timeout_s:
        raise BundleError(f"{path}: its first run was not over after {timeout_s:g} s")
    if status < 0:
        raise BundleError(
            f"{path}: its first load and run killed the process that tried it "
            f"({_signal_name(-status)}); the file is damaged or not made for this machine"
        )
    last = (errors.decode("utf-8", errors="replace").strip().splitlines() or ["no word"])[-1]
    raise BundleError(f"{path}: the process that tried it ended with status {status} ({last[:200]})")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def main(folder: str, limit: str, threads: str, parent: str) -> None:
    """Be the child."""
    _confine(int(limit), int(parent))
    # Nothing but our lines may reach the parent's pipe.
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(**event: object) -> None:
        report.write(json.dumps(event) + "\n")
        report.flush()

    current = Path(folder)
    try:
        set_threads(int(threads))
        root = current
        manifest = read_manifest(root)
        allowed = tolerance(manifest)
        for name, entry in manifest.programs.items():
            current = root / entry.file
            tell(begin=name)
            program = load_program(current, entry)
            current = root / manifest.golden[name]
            worst = check_golden(program, entry, current, allowed)
            program.close()
            tell(done=name, difference=worst)
    except MemoryError:
        tell(error=f"{current}: needs more memory than the {int(limit) / 1e6:.0f} MB it may have")
    except (ValueError, ImportError) as error:
        tell(error=" ".join(str(error).split()))


def _confine(limit: int, parent: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Of the data only: mapped files and reserved address space cost nothing.
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)
