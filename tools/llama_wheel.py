# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Build llama-cpp-python once for this machine's processor and keep the wheel.

There are no wheels of it on the package index, and its build takes 5 to 15 minutes on two cores.
So it is not part of `make setup` but of `make setup-qwen`, and the wheel goes into the user's
cache, from where every clone and every new .venv has it in seconds.

It is built with GGML_NATIVE=ON: for exactly the instructions that this processor has, which is what
makes its 8-bit products quick. The cache is therefore named after them, too: a folder that several
machines share never gives one what another was built for.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from pathlib import Path
from typing import Callable

from stamps import Stamps, digest

PACKAGE = "llama-cpp-python"
CMAKE_ARGS = "-DGGML_NATIVE=ON"
#: Lines of /proc/cpuinfo that list a processor's instructions: x86, ARM.
_FLAGS = re.compile(r"^(?:flags|Features)\s*:\s*(.*)$", re.MULTILINE)


def processor() -> str:
    """Return a short name for what this processor can do."""
    try:
        found = _FLAGS.search(Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    flags = " ".join(sorted(found[1].split())) if found else platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(flags.encode()).hexdigest()[:12]}"


def cache_folder() -> Path:
    """Return where wheels for this processor are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base else Path.home() / ".cache"
    return root / "omni_ros" / "wheels" / processor()


def kept_wheel(version: str) -> Path | None:
    """Return the wheel of this version in the cache, None if there is none."""
    name = PACKAGE.replace("-", "_")
    return next(iter(sorted(cache_folder().glob(f"{name}-{version}-*.whl"))), None)


def pinned_version(constraints: Path) -> str:
    """Return the version that the constraints name."""
    for line in constraints.read_text().splitlines():
        if line.startswith(f"{PACKAGE}=="):
            return line.partition("==")[2].strip()
    raise ValueError(f"{constraints}: expected a line {PACKAGE}==VERSION")


def ensure(
    python: Path, requirements: Path, constraints: Path, stamps: Stamps, run: Callable,
    say: Callable,
) -> bool:
    """Install llama-cpp-python and what it needs, building it if the cache has none; return
    whether anything was done.

    :param requirements: qwen.txt. :param run: runs a command or raises. :param say: tells the user.
    """
    version = pinned_version(constraints)
    stamp = digest([requirements, constraints, Path(__file__)], extra=[processor()])
    if stamps.fresh("qwen", stamp):
        return False
    wheel = kept_wheel(version) or _build(python, version, constraints, run, say)
    say(f"installing {wheel.name}")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           "--constraint", constraints]
    names = [line.strip() for line in requirements.read_text().splitlines()
             if line.strip() and not line.startswith("#")]
    run([*pip, *(name for name in names if name != PACKAGE)])
    # A wheel of the same version may be installed that another processor's flags went into.
    run([*pip, "--no-deps", "--force-reinstall", wheel])
    stamps.write("qwen", stamp)
    return True


def _build(python: Path, version: str, constraints: Path, run: Callable, say: Callable) -> Path:
    say(f"building {PACKAGE} {version} for this processor: 5 to 15 minutes on two cores, once")
    folder = cache_folder()
    # Built beside and moved whole: a build that was cut off leaves no half wheel.
    partial = folder / f"partial-{os.getpid()}"
    partial.mkdir(parents=True, exist_ok=True)
    environment = {
        "CMAKE_BUILD_PARALLEL_LEVEL": str(len(os.sched_getaffinity(0))), **os.environ,
        "CMAKE_ARGS": f"{CMAKE_ARGS} {os.environ.get('CMAKE_ARGS', '')}".strip(),
    }
    try:
        run([python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--no-cache-dir", "--wheel-dir", partial, f"{PACKAGE}=={version}"], env=environment)
        made = next(partial.glob("*.whl"))
        return Path(shutil.move(made, folder / made.name))
    finally:
        shutil.rmtree(partial, ignore_errors=True)
