# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Try a library in a Python process of its own.

A broken graphics driver or middleware ends the process that loads it, often without an exception.
`omni doctor` must live to tell.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import omni_ros


@dataclass(frozen=True)
class Outcome:
    """How a child ended.

    :param ok: it ended with status 0.
    :param output: its standard output, stripped.
    :param error: "" if ok, else the last line it wrote, or how it was ended.
    """

    ok: bool
    output: str
    error: str


def try_python(
    code: str, *, timeout: float = 30.0, environment: Mapping[str, str] | None = None
) -> Outcome:
    """Run Python code in a child with this interpreter and this module path. Never raises.

    :param timeout: seconds.
    :param environment: variables to set on top of the present ones.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
            env={**child_environment(), **(environment or {})},
            # The folder one happens to be in must not shadow what is installed.
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return Outcome(False, "", f"no answer within {timeout:g} s")
    except OSError as error:
        return Outcome(False, "", str(error))
    if done.returncode == 0:
        return Outcome(True, done.stdout.strip(), "")
    if done.returncode < 0:
        reason = f"ended by {_signal_name(-done.returncode)}"
    else:
        reason = f"ended with status {done.returncode}"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return Outcome(False, done.stdout.strip(), lines[-1] if lines else reason)


def child_environment() -> dict[str, str]:
    """Return the environment in which a child imports the same omni_ros as this process."""
    present = os.environ.get("PYTHONPATH", "")
    paths = [os.path.abspath(path) for path in present.split(os.pathsep) if path]
    root = os.fspath(Path(omni_ros.__file__).resolve().parent.parent)
    if root not in paths:
        paths.append(root)  # last: a site-packages must not hide the standard library
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
