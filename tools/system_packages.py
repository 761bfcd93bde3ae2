# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""System packages: installed with apt when root, else named in one clear line."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Callable


class MissingPackages(Exception):
    """System packages are missing and this user may not install them."""


def _library(name: str) -> Callable[[], bool]:
    return lambda: ctypes.util.find_library(name) is not None


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


def _headers() -> bool:
    return (Path(sysconfig.get_paths()["include"]) / "Python.h").exists()


def _venv() -> bool:
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        return False
    return True


def wanted(wheels: bool) -> dict[str, tuple[str, Callable[[], bool]]]:
    """Debian package -> (what it is for, test whether it is there)."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    packages = {
        "g++": ("compiles the message types", _program("g++", "c++")),
        "cmake": ("builds the package", _program("cmake")),
        "make": ("builds the package", _program("make")),
        f"python{version}-venv": ("creates .venv", _venv),
        f"libpython{version}-dev": ("compiles the message types", _headers),
        "libosmesa6": ("renders the world without a screen", _library("OSMesa")),
        "libportaudio2": ("plays speech", _library("portaudio")),
        "espeak-ng": ("turns text into phonemes", _program("espeak-ng")),
    }
    return packages


def missing(wheels: bool) -> dict[str, str]:
    """Missing Debian packages -> what each is for."""
    return {
        name: purpose for name, (purpose, present) in wanted(wheels).items() if not present()
    }


def ensure(say: Callable[[str], None], wheels: bool) -> None:
    """Install what is missing when root.

    :raises MissingPackages: not root, no apt, or apt failed; the message has the line to type.
    """
    lacking = missing(wheels)
    if not lacking:
        return
    names = list(lacking)
    line = "apt-get install -y --no-install-recommends " + " ".join(names)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        needs = ", ".join(f"{name} ({purpose})" for name, purpose in lacking.items())
        raise MissingPackages(f"missing system packages: {needs}. Type: sudo {line}")
    say("installing system packages: " + " ".join(names))
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], line.split()):
        result = subprocess.run(command, env=env, text=True, capture_output=True)
        if result.returncode != 0 and command[1] == "install":
            tail = "\n".join((result.stdout + result.stderr).splitlines()[-15:])
            raise MissingPackages(f"'{' '.join(command)}' failed:\n{tail}")
