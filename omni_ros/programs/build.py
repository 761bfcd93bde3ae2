# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Build the native library where no ROS build did: `python -m omni_ros.programs.build`

Done by itself at first use; takes some seconds, needs CMake and a C++17 compiler. The result goes
to a folder of the user's cache that is named after the sources and the executorch version, so a new
version of either builds anew and never loads a library that does not fit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from omni_ros.programs.errors import NativeLibraryError
from omni_ros.programs.wheel import LIBRARY, Wheel, find_wheel

_PACKAGE = Path(__file__).resolve().parents[1]


def source_folder() -> Path:
    """Return the folder of the C++ sources: in the installed package, or beside it in a clone.

    :raises NativeLibraryError: it is in neither place.
    """
    for folder in (_PACKAGE / "native", _PACKAGE.parent / "native"):
        if (folder / "CMakeLists.txt").is_file():
            return folder
    raise NativeLibraryError(
        f"{LIBRARY} cannot be built: this installation of omni_ros carries no native/ folder. "
        "Build the package with colcon, or install it with pip from a clone"
    )


def cache_folder() -> Path:
    """Return the user's folder for built libraries; OMNI_ROS_CACHE or XDG_CACHE_HOME move it."""
    own = os.environ.get("OMNI_ROS_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "omni_ros"


def cached_library(wheel: Wheel, sources: Path) -> Path:
    """Return where the library for this wheel and these sources is, or would be."""
    digest = hashlib.sha256()
    for path in sorted(sources.iterdir()):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache_folder() / f"executorch-{wheel.version}-{digest.hexdigest()[:12]}" / LIBRARY


def build(wheel: Wheel | None = None) -> Path:
    """Build the library unless it is there already.

    :return: the path of the library.
    :raises MissingDependency: no executorch wheel.
    :raises NativeLibraryError: no CMake or no compiler, or the build failed (its last lines).
    """
    wheel = wheel or find_wheel()
    sources = source_folder()
    target = cached_library(wheel, sources)
    if target.is_file():
        return target
    cmake = shutil.which("cmake")
    if cmake is None:
        raise NativeLibraryError(
            f"{LIBRARY} must be built once and there is no cmake. "
            "Type: sudo apt install cmake g++ (or pip install cmake)"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="omni_programs-") as folder:
        _run_cmake(cmake, wheel, sources, Path(folder))
        # Another process may be building too: whoever comes last replaces the file whole.
        temporary = target.with_suffix(f".{os.getpid()}")
        shutil.copyfile(Path(folder) / LIBRARY, temporary)
        os.replace(temporary, target)
    return target


def _run_cmake(cmake: str, wheel: Wheel, sources: Path, folder: Path) -> None:
    for command in (
        [
            cmake,
            *("-S", str(sources), "-B", str(folder)),
            f"-Dexecutorch_DIR={wheel.cmake}",
            f"-DPython3_EXECUTABLE={sys.executable}",
        ],
        [cmake, "--build", str(folder)],
    ):
        result = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if result.returncode == 0:
            continue
        text = result.stdout + result.stderr
        if "CMAKE_CXX_COMPILER" in text and "not" in text:
            raise NativeLibraryError(
                f"{LIBRARY} must be built once and there is no working C++ compiler. "
                "Type: sudo apt install g++"
            )
        lines = [line for line in text.splitlines() if line.strip()][-12:]
        raise NativeLibraryError(
            f"{LIBRARY} does not build against executorch {wheel.version}:\n  " + "\n  ".join(lines)
        )


def main() -> int:
    """Build and print the path."""
    try:
        print(build())
    except ImportError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
