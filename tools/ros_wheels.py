# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""ROS 2 Jazzy out of Python wheels: what pip alone does not bring.

The `ros-jazzy-*` wheels hold rclpy, Fast DDS, the common messages and the interface generators.
Two things are missing, and both are mended here:

* their CMake files name the Python of the machine they were built on;
* `launch`, `launch_ros`, `ros2cli` and friends have no wheels of their own. They are pure Python and
  Apache-2.0 (or BSD) licensed, and lie inside the wheel of `isaacsim-ros2`. That wheel as a whole is
  under NVIDIA's licence, so it is fetched at set-up, only where no ROS 2 is installed, and nothing
  of it is redistributed with this project.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Callable

from stamps import Stamps, digest

BORROWED_WHEEL = "isaacsim-ros2"
#: Where the pure Python ROS packages lie inside the wheel.
INSIDE = "isaacsim/exts/isaacsim.ros2.core/jazzy/rclpy/"
#: Packages taken from it, each with its egg-info so that entry points work.
MODULES = (
    "composition_interfaces",   # imported by launch_ros; its Python part only
    "diagnostic_updater",
    "launch", "launch_ros", "launch_xml", "launch_yaml",
    "message_filters",
    "osrf_pycommon",
    "ros2cli", "ros2node", "ros2param", "ros2pkg", "ros2run", "ros2service", "ros2topic",
    "rosidl_runtime_py",
)


class WheelError(Exception):
    """The wheels could not be made into a working ROS 2."""


def correct_cmake_paths(venv: Path, python: Path) -> int:
    """Point the wheels' CMake files to this Python and numpy; return how many files changed."""
    probe = "import numpy, sysconfig; print(sysconfig.get_paths()['include']); print(numpy.get_include())"
    output = subprocess.run([str(python), "-c", probe], text=True, capture_output=True, check=True)
    include, numpy_include = output.stdout.split("\n")[:2]
    changed = 0
    for file in (venv / "share").rglob("*.cmake"):
        text = file.read_text()
        new = re.sub(r"/opt/python/cp311-cp311/include/python3\.11", include, text)
        new = re.sub(r"[^;\"\s]*/numpy/_?core/include", numpy_include, new)
        if new != text:
            file.write_text(new)
            changed += 1
    return changed


def pinned(constraints: Path, package: str) -> str:
    """Version of a package in the constraints file.

    :raises WheelError: the package is not pinned there.
    """
    match = re.search(rf"^{re.escape(package)}==(\S+)", constraints.read_text(), re.MULTILINE)
    if not match:
        raise WheelError(f"{package} has no version in {constraints}")
    return match.group(1)


def unpack_borrowed(wheel: Path, site_packages: Path) -> None:
    """Unpack the pure Python ROS packages of the wheel into site-packages."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.startswith(INSIDE) or name.endswith("/"):
                continue
            inner = name[len(INSIDE):]
            top = inner.split("/", 1)[0]
            module = top.split("-", 1)[0]
            # Compiled parts are for another Python; nothing here needs them.
            if module not in MODULES or inner.endswith(".so"):
                continue
            target = site_packages / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)


def register_packages(venv: Path, site_packages: Path) -> None:
    """Enter the unpacked packages in the ament index, so that ros2 finds them by name."""
    index = venv / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True, exist_ok=True)
    for module in MODULES:
        if (site_packages / module).exists():
            (index / module).touch()


def ensure(python: Path, venv: Path, tools: Path, stamps: Stamps, constraints: Path,
           run: Callable, say: Callable[[str], None]) -> bool:
    """Complete the wheels in `venv`; return whether anything was done.

    :raises WheelError: the wheel is not what is expected.
    """
    verb = tools / "ros2launch_verb"
    version = pinned(constraints, BORROWED_WHEEL)
    requirements = constraints.with_name("ros-jazzy.txt")
    stamp = digest([Path(__file__), constraints, requirements, *verb.rglob("*.py")])
    if stamps.fresh("ros_wheels", stamp):
        return False
    correct_cmake_paths(venv, python)
    site_packages = next((venv / "lib").glob("python3*/site-packages"))
    say(f"launch and ros2cli: taken from the wheel {BORROWED_WHEEL} {version} (133 MB); the modules "
        "used are Apache-2.0/BSD, the wheel's own licence is NVIDIA's")
    with tempfile.TemporaryDirectory() as folder:
        run([python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--only-binary=:all:", "--python-version", "3.12", "--platform",
             "manylinux_2_35_x86_64", "--dest", folder, f"{BORROWED_WHEEL}=={version}"])
        wheels = list(Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            raise WheelError(f"expected one wheel of {BORROWED_WHEEL} {version}, got {len(wheels)}")
        unpack_borrowed(wheels[0], site_packages)
    absent = [name for name in MODULES if not (site_packages / name).exists()]
    if absent:
        raise WheelError(f"{BORROWED_WHEEL} {version} has no {', '.join(absent)}")
    register_packages(venv, site_packages)
    with tempfile.TemporaryDirectory() as folder:
        # A copy, since building writes into the source folder.
        copy = shutil.copytree(verb, Path(folder) / verb.name)
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--no-build-isolation", "--force-reinstall", copy])
    stamps.write("ros_wheels", stamp)
    return True
