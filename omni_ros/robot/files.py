# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Find the configuration files that belong to this copy of omni_ros, however it was installed."""

from __future__ import annotations

from pathlib import Path

import omni_ros
from omni_ros.robot.errors import RobotConfigError

#: The robot of the simulated world, for a machine that has no other.
DEFAULT_ROBOT = "tabletop"


def config_folder(package: Path | None = None) -> Path | None:
    """Return the folder that holds `robots/`, None if this copy came without.

    :param package: the folder of the omni_ros package; the imported one if None.
    """
    package = Path(omni_ros.__file__).resolve().parent if package is None else package
    candidates = [package / "config", package.parent / "config"]  # pip install, source tree
    # A colcon build: PREFIX/lib/python3.x/site-packages/omni_ros beside PREFIX/share/omni_ros.
    candidates += [parent / "share" / "omni_ros" / "config" for parent in package.parents]
    return next((folder for folder in candidates if (folder / "robots").is_dir()), None)


def robot_file(robot: str = "") -> Path:
    """Return the path of a robot file.

    :param robot: a path, or the name of a file below `robots/`; "" for DEFAULT_ROBOT.
    :raises RobotConfigError: there is no such file; the message lists those there are.
    """
    if robot.endswith((".yaml", ".yml")) or "/" in robot:
        path = Path(robot)
        if not path.is_file():
            raise RobotConfigError(f"there is no robot file {path}; give a path to one that is there")
        return path
    folder = config_folder()
    files = [] if folder is None else sorted(folder.glob("robots/*.yaml"))
    known = ", ".join(path.stem for path in files) or "none"
    name = robot or DEFAULT_ROBOT
    match = next((path for path in files if path.stem == name), None)
    if match is None:
        raise RobotConfigError(f"there is no robot {name!r}; expected a path or one of: {known}")
    return match


def with_rate(robot: str, rate_hz: float, folder: Path) -> Path:
    """Write a copy of a robot file whose player ticks at `rate_hz`; return its path."""
    import yaml

    from omni_ros.robot.load import read_yaml

    source = robot_file(robot)
    content = read_yaml(source)
    if not isinstance(content, dict):
        raise RobotConfigError(f"{source}: expected a mapping at the top, got {type(content).__name__}")
    content["player"] = {**(content.get("player") or {}), "rate_hz": float(rate_hz)}
    copy = folder / source.name
    copy.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return copy
