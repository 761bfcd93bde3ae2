# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Install the core and the `omni` command on a machine without ROS: `pip install .`

On a robot the same sources are built by colcon through CMakeLists.txt, which also generates the
messages and installs nodes/ and launch/. Nothing of that needs this file: colcon takes the build
type (ament_cmake) from package.xml.
"""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent


def read_version() -> str:
    """Take the version from the package's text, so that building needs none of its imports."""
    text = (ROOT / "omni_ros" / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    if match is None:
        raise RuntimeError('omni_ros/__init__.py: expected a line __version__ = "X.Y.Z"; add it')
    return match.group(1)


def read_long_description() -> str:
    readme = ROOT / "README.md"
    return readme.read_text(encoding="utf-8") if readme.exists() else ""


setup(
    name="omni_ros",
    version=read_version(),
    description="Vision-language-action policies and speech on ROS 2 robots: "
    "deadlines, limits and memory known before the robot moves",
    long_description=read_long_description(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    # Nothing heavier belongs here: torch, executorch and ROS are wanted only by those who use them.
    install_requires=["numpy", "pyyaml"],
    extras_require={
        "world": ["mujoco"],
        "export": ["executorch", "gguf", "safetensors", "tokenizers", "torch"],
        "openpi": ["msgpack", "websockets>=15"],
        "replay": ["mcap", "rosbags"],
        "qwen": ["llama-cpp-python"],
        "report": ["matplotlib"],
        "speech": ["sounddevice", "soxr"],
        "test": ["pytest", "hypothesis"],
    },
    # config/ is data beside the package in the source tree and omni_ros/config once installed.
    # models/ and native/ likewise: top-level folders in the source tree, inside the package once installed.
    packages=[
        *find_packages(include=["omni_ros", "omni_ros.*"]), "omni_ros.config", "omni_ros.native",
        "omni_ros.interfaces",  # the .msg files, to read bags that do not hold them
        *("omni_ros." + name for name in find_packages(include=["models", "models.*"])),
    ],
    package_dir={
        "omni_ros.config": "config", "omni_ros.native": "native", "omni_ros.models": "models",
        "omni_ros.interfaces": "msg"},
    package_data={
        "omni_ros.config": ["*.yaml", "robots/*.yaml", "openpi/*.yaml"],
        "omni_ros.interfaces": ["*.msg"],
        "omni_ros.native": ["*.cpp", "*.h", "CMakeLists.txt"],
        "omni_ros.models.tabletop": ["checkpoint/*", "checkpoint/vlm/*", "record/*"],
    },
    entry_points={"console_scripts": ["omni = omni_ros.cli.main:main"]},
    zip_safe=False,
)
