# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Start the table-top graph with some settings changed, and notice when one of its nodes dies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from omni_ros.robot.files import robot_file

GRAPH = ("ros2", "launch", "omni_ros", "vla.launch.py", "world:=true")

#: As launch and the lifecycle manager tell of a node that is no longer what was started.
_DIED = re.compile(r"\[(?P<name>[\w.-]+?)(-\d+)?\]: process has died \[pid \d+, exit code (?P<code>-?\d+)")
_REFUSED = re.compile(r"(?P<name>[\w/]+) could not (?P<step>configure|activate) in \d+ tries")
_ERROR = re.compile(r"\[(ERROR|FATAL)\]")


def changed_robot(
    robot: str, folder: Path, *, policy: Mapping[str, Any] | None = None,
    cameras: Mapping[str, str] | None = None,
) -> Path:
    """Write a copy of a robot file with some of its settings changed; return its path.

    :param robot: a path or a name; "" for the default one.
    :param policy: settings of its section `policy` to put in place.
    :param cameras: image topics to put in the place of those there, by camera.
    """
    import yaml

    from omni_ros.robot.load import load_robot, read_yaml

    source = robot_file(robot)
    load_robot(source)  # refused here, where the message names the user's own file
    content = read_yaml(source)
    if policy:
        content["policy"] = {**(content.get("policy") or {}), **policy}
    if cameras:
        content["topics"] = {**content["topics"],
                             "cameras": {**content["topics"].get("cameras", {}), **cameras}}
    copy = folder / source.name
    copy.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    load_robot(copy)  # a setting out of range is refused before anything starts
    return copy


def deaths(text: str) -> list[str]:
    """Return what a launch's output tells of nodes that died or could not be brought up."""
    found = []
    for line in text.splitlines():
        died, refused = _DIED.search(line), _REFUSED.search(line)
        if died:
            found.append(f"{died['name']} died (exit code {died['code']})")
        elif refused:
            own = [other for other in text.splitlines()
                   if _ERROR.search(other) and refused["name"].strip("/") in other and other != line]
            reason = f": {own[-1].strip()}" if own else ""
            found.append(f"{refused['name']} could not {refused['step']}{reason}")
    return found


def watching(check_alive: Callable[[], None], log: Path) -> Callable[[], None]:
    """Return a check that also raises once the launch has told of a node's death.

    A node that dies is started again, but what is being measured then is another graph.

    :raises RuntimeError: from the returned function, naming who died and how.
    """
    seen = 0

    def check() -> None:
        nonlocal seen
        size = log.stat().st_size
        if size != seen:
            seen = size
            found = deaths(log.read_text(encoding="utf-8", errors="replace"))
            if found:
                raise RuntimeError("; ".join(found))
        check_alive()

    return check
