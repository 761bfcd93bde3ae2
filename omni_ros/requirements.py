# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Import what is optional, or say plainly what to install.

The core needs numpy and PyYAML. Everything else is asked for at the point of use::

    mujoco = require("mujoco", "to simulate the table-top world")
"""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROS_ROOT = Path("/opt/ros")


class MissingDependency(ImportError):
    """An optional module is absent or does not load; the message says what to type."""


@dataclass(frozen=True)
class Dependency:
    """How an optional module is had.

    :param pip: what to give to ``pip install``; None if it is on no package index.
    :param apt: the Debian/Ubuntu package, where one exists.
    :param note: a fact that saves a try, for example a missing wheel.
    """

    pip: str | None = None
    apt: str | None = None
    note: str = ""

    def command(self) -> str:
        """Return the line to type."""
        if self.pip is not None:
            return f"pip install {self.pip}"
        return f"sudo apt install {self.apt}"


#: Modules that some part of omni_ros can use, by import name.
DEPENDENCIES: Mapping[str, Dependency] = {
    "torch": Dependency(pip="torch", note="needed to export and to compare, never to run a robot"),
    "executorch": Dependency(
        pip="executorch",
        note="on a robot its C++ libraries are enough: pip install --no-deps executorch",
    ),
    "mujoco": Dependency(pip="mujoco"),
    "cv2": Dependency(pip="opencv-python-headless", apt="python3-opencv"),
    "llama_cpp": Dependency(
        pip="llama-cpp-python",
        note="it is built from source, 5 to 15 minutes; `make setup-qwen` in a clone does it once",
    ),
    "soxr": Dependency(pip="soxr"),
    "sounddevice": Dependency(
        pip="sounddevice", note="it also needs PortAudio: sudo apt install libportaudio2"
    ),
    "mcap": Dependency(pip="mcap"),
    "rosbags": Dependency(pip="rosbags"),
    "websockets": Dependency(pip="websockets>=15", apt="python3-websockets"),
    "msgpack": Dependency(pip="msgpack", apt="python3-msgpack"),
    "gguf": Dependency(pip="gguf"),
    "safetensors": Dependency(pip="safetensors"),
    "tokenizers": Dependency(pip="tokenizers"),
    "psutil": Dependency(pip="psutil", apt="python3-psutil"),
}

#: Python packages that come with a ROS 2, each with the tail of its Debian package's name.
ROS_MODULES: Mapping[str, str] = {
    "rclpy": "rclpy",
    "launch": "launch",
    "launch_ros": "launch-ros",
    "std_msgs": "std-msgs",
    "std_srvs": "std-srvs",
    "sensor_msgs": "sensor-msgs",
    "trajectory_msgs": "trajectory-msgs",
    "lifecycle_msgs": "lifecycle-msgs",
    "diagnostic_msgs": "diagnostic-msgs",
    "diagnostic_updater": "diagnostic-updater",
    "rosbag2_py": "rosbag2-py",
}


def require(module: str, purpose: str) -> ModuleType:
    """Import an optional module.

    :param module: import name; a dotted one is looked up by its first part.
    :param purpose: completes "... is needed", for example ``"to simulate the table-top world"``.
    :return: the module.
    :raises MissingDependency: it is absent, or it is there but does not load. The message names
        the package, the purpose and the line to type.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        root = module.partition(".")[0]
        missing = error.name or root
        if missing == root or missing.startswith(f"{root}."):
            raise MissingDependency(missing_text(module, purpose), name=root) from error
        raise MissingDependency(broken_text(module, purpose, error), name=root) from error
    except (ImportError, OSError) as error:
        # An OSError is how ctypes-based packages report a shared library that is not there.
        raise MissingDependency(broken_text(module, purpose, error), name=module) from error


def install_line(module: str) -> str:
    """Return the exact line that makes `module` importable on this machine."""
    root = module.partition(".")[0]
    if root in ROS_MODULES:
        return _ros_line(root)
    if root == "omni_ros":
        return "colcon build --packages-select omni_ros && source install/setup.bash"
    return DEPENDENCIES.get(root, Dependency(pip=root)).command()


def missing_text(module: str, purpose: str) -> str:
    """Return the message for an absent module."""
    root = module.partition(".")[0]
    if root in ROS_MODULES:
        kind = f"the ROS 2 package {root}"
    elif root == "omni_ros":
        kind = "a part of omni_ros that only its build in a ROS 2 workspace has"
    else:
        dependency = DEPENDENCIES.get(root, Dependency(pip=root))
        names = [f"PyPI: {dependency.pip}"] if dependency.pip else []
        names += [f"Debian: {dependency.apt}"] if dependency.apt else []
        kind = f"package {', '.join(names)}"
    text = f"{module} is not installed ({kind}); it is needed {purpose}. Type: {install_line(root)}"
    return text + _note(root)


def broken_text(module: str, purpose: str, error: BaseException) -> str:
    """Return the message for a module that is installed but does not load."""
    root = module.partition(".")[0]
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    text = f"{module} is installed but does not load ({reason}); it is needed {purpose}."
    if root in ROS_MODULES:
        advice = " Source the setup file of a ROS 2 built for this Python"
        return f"{text}{advice} ({platform.python_version()}): {install_line(root)}"
    return f"{text} Type: {install_line(root)}{_note(root)}"


def _note(root: str) -> str:
    note = DEPENDENCIES.get(root, Dependency(pip=root)).note
    return f" (note: {note})" if note else ""


def installed_distros(root: Path | None = None) -> list[str]:
    """Return the names of the ROS 2 distributions below /opt/ros, sorted."""
    root = ROS_ROOT if root is None else root
    return sorted(path.parent.name for path in root.glob("*/setup.bash"))


def _ros_line(module: str) -> str:
    distros = installed_distros()
    wanted = os.environ.get("ROS_DISTRO") or (distros[-1] if distros else "jazzy")
    if os.environ.get("AMENT_PREFIX_PATH") and wanted in distros:
        # A sourced ROS that lacks this one package.
        return f"sudo apt install ros-{wanted}-{ROS_MODULES[module]}"
    if distros:
        distro = wanted if wanted in distros else distros[-1]
        return f"source {ROS_ROOT / distro / 'setup.bash'}"
    return "make setup && source setup.bash (in a clone of omni_ros)"
