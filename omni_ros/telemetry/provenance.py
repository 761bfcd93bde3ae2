# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Where a figure comes from: every number that omni_ros prints carries this along."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import omni_ros
from omni_ros.telemetry import machine

#: Distributions whose version can change a figure.
PACKAGES = (
    "numpy",
    "pyyaml",
    "torch",
    "executorch",
    "torchao",
    "llama-cpp-python",
    "mujoco",
    "sounddevice",
)

_GIB = 1 << 30


def provenance() -> dict[str, Any]:
    """Return the machine, the software and the load at this moment, ready for JSON.

    Bytes, cores and seconds are plain numbers. What cannot be found out is None. Never raises.
    """
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "omni_ros": {"version": omni_ros.__version__, "git": git_version()},
        "machine": platform.machine(),
        "cpu": machine.cpu_model(),
        "cpu_features": machine.cpu_features(),
        "cpus_online": os.cpu_count(),
        "cpus_allowed": machine.cpus_allowed(),
        "cgroup_cpus": machine.cgroup_cpus(),
        "cores_usable": machine.cores_usable(),
        "memory": machine.memory(),
        "kernel": machine.kernel(),
        "os": machine.operating_system(),
        "python": platform.python_version(),
        "packages": package_versions(),
        "ros_distro": os.environ.get("ROS_DISTRO"),
        "rmw": os.environ.get("RMW_IMPLEMENTATION"),
        "load_average": machine.load_average(),
    }


def one_line(facts: dict[str, Any] | None = None) -> str:
    """Return the provenance as one line of text.

    :param facts: what `provenance` returned earlier; taken now if None.
    """
    facts = provenance() if facts is None else facts
    version = facts["omni_ros"]["version"]
    if facts["omni_ros"]["git"]:
        version += f" ({facts['omni_ros']['git']})"
    parts = [f"omni_ros {version}", facts["cpu"], f"{facts['cores_usable']:g} cores"]
    total = facts["memory"]["total"]
    if total is not None:
        parts.append(f"{total / _GIB:.1f} GiB")
    preemption = facts["kernel"]["preemption"]
    parts.append(f"Linux {facts['kernel']['release']}{' ' + preemption if preemption else ''}")
    parts.append(facts["os"])
    parts.append(f"Python {facts['python']}")
    parts += [f"{name} {number}" for name, number in facts["packages"].items()]
    if facts["ros_distro"]:
        parts.append(f"ROS 2 {facts['ros_distro']}")
    if facts["load_average"]:
        parts.append(f"load {facts['load_average'][0]:.2f}")
    parts.append(facts["time"])
    return ", ".join(parts)


def package_versions() -> dict[str, str]:
    """Return the versions of those of PACKAGES that are installed, without importing any."""
    versions = {}
    for name in PACKAGES:
        number = package_version(name)
        if number is not None:
            versions[name] = number
    return versions


def package_version(name: str) -> str | None:
    """Return the version of an installed distribution, None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def git_version(folder: Path | None = None) -> str | None:
    """Return the short commit of the source tree, with "-dirty" if it has been changed.

    None where omni_ros was installed from a release or git is absent.
    """
    folder = Path(omni_ros.__file__).resolve().parent if folder is None else folder
    # An installed copy can lie inside someone else's repository (a venv in a checkout, say): only
    # a tree that git tracks is the source of this code.
    if not _git(folder, "ls-files", "--", "__init__.py"):
        return None
    return _git(folder, "describe", "--always", "--dirty", "--exclude=*")


def _git(folder: Path, *arguments: str) -> str | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", os.fspath(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


if __name__ == "__main__":
    sys.stdout.write(one_line() + "\n")
