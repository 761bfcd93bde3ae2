# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a recording was made with: versions, robot and parameters, as text and as a hash."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Mapping
from typing import Any

import yaml

#: Of a recording: raised when what older readers rely on changes.
FORMAT = 1
#: Versions that decide whether a replay is expected to give the same bits.
DECISIVE = ("machine", "omni_ros", "numpy", "executorch", "programs")


def versions() -> dict[str, str]:
    """Return what can change the bits of an action, and what helps to find out, by name.

    "machine" is equal on machines whose kernels should agree bit for bit; "" stands for absent.
    """
    return dict(_versions())


@functools.lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    import omni_ros
    from omni_ros.bundles.golden import this_machine
    from omni_ros.programs.native import ABI
    from omni_ros.telemetry import machine
    from omni_ros.telemetry.provenance import git_version, package_version

    return {
        "machine": this_machine(),
        "omni_ros": omni_ros.__version__,
        "numpy": package_version("numpy") or "",
        "executorch": package_version("executorch") or "",
        "programs": str(ABI),
        "git": git_version() or "",
        "python": platform.python_version(),
        "kernel": machine.kernel()["release"] or "",
        "os": machine.operating_system() or "",
        "ros": os.environ.get("ROS_DISTRO", ""),
        "rmw": os.environ.get("RMW_IMPLEMENTATION", ""),
    }


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the decisive versions that differ, or that were not recorded, (before, now) each."""
    return {name: (before.get(name, ""), now.get(name, "")) for name in DECISIVE
            if not before.get(name) or before.get(name) != now.get(name)}


def configuration_yaml(robot: str, parameters: Mapping[str, Mapping[str, Any]]) -> str:
    """Return robot and parameters as one YAML text, the same for the same content.

    :param robot: the text of the robot YAML. :param parameters: by node, plain values by name.
    """
    document = {"robot": robot, "parameters": {name: dict(values) for name, values in
                                               parameters.items()}}
    return yaml.safe_dump(document, sort_keys=True, allow_unicode=True, width=1 << 20)


def configuration_hash(text: str) -> str:
    """Return the SHA-256 of a configuration's text."""
    return hashlib.sha256(text.encode()).hexdigest()


#: The same as yaml.SafeLoader, in C where PyYAML was built with it.
SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.lru_cache(maxsize=8)
def read_configuration(text: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the robot YAML and the parameters by node of :func:`configuration_yaml`.

    :raises ValueError: the text is something else.
    """
    try:
        document = yaml.load(text, Loader=SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"the recorded configuration is no YAML: {' '.join(str(error).split())}"
                         ) from None
    robot = document.get("robot") if isinstance(document, dict) else None
    parameters = document.get("parameters") if isinstance(document, dict) else None
    if not isinstance(robot, str) or not isinstance(parameters, dict):
        raise ValueError("the recorded configuration is not `robot:` and `parameters:`; expected the "
                         "text that a recorder writes")
    return robot, parameters
