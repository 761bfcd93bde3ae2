# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Where the executorch wheel lies and which version it is, found without importing it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from omni_ros.requirements import MissingDependency, broken_text, missing_text

PURPOSE = "to run the programs of a bundle (its C++ libraries are enough: pip install --no-deps)"

#: The library over the wheel, built from native/.
LIBRARY = "libomni_programs.so"

#: Loaded in this order, so that each finds the ones it needs. The last two register themselves:
#: the delegate that runs whole networks, and the kernels for what no delegate took.
LIBRARIES = (
    "libexecutorch.so",
    "libexecutorch_threadpool.so",
    "libexecutorch_backend_xnnpack.so",
    "libexecutorch_kernels_optimized.so",
)


@dataclass(frozen=True)
class Wheel:
    """An installed executorch wheel.

    :param root: its package folder, with lib/, include/ and share/cmake/.
    :param version: as the C++ side names it, for example "1.5.1+cpu".
    """

    root: Path
    version: str

    @property
    def libraries(self) -> list[Path]:
        """The shared libraries to load, in order."""
        return [self.root / "lib" / name for name in LIBRARIES]

    @property
    def cmake(self) -> Path:
        """The folder for `executorch_DIR`."""
        return self.root / "share" / "cmake"


def find_wheel() -> Wheel:
    """Return the installed wheel.

    :raises MissingDependency: none is installed, or it is one without C++ libraries (< 1.5).
    """
    try:
        distribution = metadata.distribution("executorch")
    except metadata.PackageNotFoundError as error:
        raise MissingDependency(missing_text("executorch", PURPOSE), name="executorch") from error
    root = Path(str(distribution.locate_file("executorch")))
    version = _build_version(root) or distribution.version
    wheel = Wheel(root, version)
    for path in wheel.libraries:
        if not path.is_file():
            reason = ImportError(f"version {version} has no lib/{path.name}; 1.5.1 has")
            raise MissingDependency(broken_text("executorch", PURPOSE, reason), name="executorch")
    return wheel


def _build_version(root: Path) -> str | None:
    try:
        text = (root / "share/cmake/executorch-config-version.cmake").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    match = re.search(r'^set\(EXECUTORCH_BUILD_VERSION "([^"]+)"\)', text, re.MULTILINE)
    return match.group(1) if match else None
