# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""System packages: installed with apt when root, else named in one clear line."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
from typing import Callable


class MissingPackages(Exception):
    """System packages are missing and this user may not install them."""


def _library(name: str) -> Callable[[], bool]:
    return lambda: ctypes.util.find_library(name) is not None


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


#: Asked of the Python that .venv is made from, which need not be the one that runs this.
_PROBE = """
import importlib.util, os, sys, sysconfig
print(*sys.version_info[:2], sep=".")
print(importlib.util.find_spec("ensurepip") is not None)
print(os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))
"""


def _probe(python: str) -> tuple[str, bool, bool]:
    """Return a Python's version, whether it can make a venv, and whether it has its headers."""
    output = subprocess.run([python, "-c", _PROBE], text=True, capture_output=True, check=True)
    version, venv, headers = output.stdout.split()
    return version, venv == "True", headers == "True"


def wanted(python: str) -> dict[str, tuple[str, Callable[[], bool]]]:
    """Debian package -> (what it is for, test whether it is there)."""
    version, venv, headers = _probe(python)
    packages = {
        "g++": ("compiles the message types", _program("g++", "c++")),
        "cmake": ("builds the package", _program("cmake")),
        "make": ("builds the package", _program("make")),
        f"python{version}-venv": ("creates .venv", lambda: venv),
        f"libpython{version}-dev": ("compiles the message types", lambda: headers),
        "libosmesa6": ("renders the world without a screen", _library("OSMesa")),
        "libportaudio2": ("plays speech", _library("portaudio")),
        "espeak-ng": ("turns text into phonemes", _program("espeak-ng")),
    }
    return packages


def missing(python: str) -> dict[str, str]:
    """Missing Debian packages -> what each is for."""
    return {
        name: purpose for name, (purpose, present) in wanted(python).items() if not present()
    }


def ensure(say: Callable[[str], None], python: str) -> None:
    """Install what is missing when root, for a .venv made from `python`.

    :raises MissingPackages: not root, no apt, or apt failed; the message has the line to type.
    """
    lacking = missing(python)
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
