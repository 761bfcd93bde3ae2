# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""System packages: installed with apt when root, else named in one clear line."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import Callable


class MissingPackages(Exception):
    """System packages are missing and this user may not install them."""


def _library(name: str) -> Callable[[], bool]:
    return lambda: ctypes.util.find_library(name) is not None


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


def _plugin(name: str) -> Callable[[], bool]:
    """ALSA loads its plugins by path, so no linker knows of them."""
    file = f"alsa-lib/libasound_module_pcm_{name}.so"
    return lambda: any(
        next(Path(base).glob(f"{depth}{file}"), None)
        for base in ("/usr/lib", "/usr/lib64") for depth in ("", "*/"))


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


#: Needed by tests alone: the same, but nobody is made to install them.
FOR_TESTS = {
    "pulseaudio": ("plays speech to the tests", _program("pulseaudio")),
    "pulseaudio-utils": ("records speech for the tests", _program("parec")),
    "libasound2-plugins": ("leads speech to pulseaudio", _plugin("pulse")),
}


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
    extra = [name for name, (_, present) in FOR_TESTS.items() if not present()]
    root = os.geteuid() == 0 and bool(shutil.which("apt-get"))
    if extra and not root:
        say("some tests of speech will be skipped without: sudo apt-get install -y "
            "--no-install-recommends " + " ".join(extra))
    names = [*lacking, *(extra if root else [])]
    if not names:
        return
    line = "apt-get install -y --no-install-recommends " + " ".join(names)
    if not root:
        needs = ", ".join(f"{name} ({purpose})" for name, purpose in lacking.items())
        raise MissingPackages(f"missing system packages: {needs}. Type: sudo {line}")
    say("installing system packages: " + " ".join(names))
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], line.split()):
        result = subprocess.run(command, env=env, text=True, capture_output=True)
        if result.returncode != 0 and command[1] == "install" and missing(python):
            tail = "\n".join((result.stdout + result.stderr).splitlines()[-15:])
            raise MissingPackages(f"'{' '.join(command)}' failed:\n{tail}")
