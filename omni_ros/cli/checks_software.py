# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Findings on the software: ROS, Python, inference backends, the simulated world, audio."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import omni_ros
from omni_ros.cli.children import try_python
from omni_ros.robot.files import config_folder
from omni_ros.cli.report import NOTE, OK, PROBLEM, Finding
from omni_ros.requirements import install_line
from omni_ros.telemetry.machine import SYSTEM_ROOT, read_text
from omni_ros.telemetry.provenance import package_version

#: Versions of Python this code is kept good for.
PYTHON_FROM, PYTHON_TO = (3, 10), (3, 13)

#: Above it, Linux may hand the ports DDS counts on to other programs.
SAFE_DOMAIN, LAST_DOMAIN = 101, 232

_ASK_RMW = """
import rclpy
from rclpy.utilities import get_rmw_implementation_identifier
print(get_rmw_implementation_identifier())
"""

_ASK_EXECUTORCH = """
from executorch.runtime import Runtime
registry = Runtime.get().backend_registry
print(", ".join(n for n in registry.registered_backend_names if registry.is_available(n)))
"""

_RENDER = """
import mujoco
model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><light pos='0 0 2'/><geom size='.2' rgba='1 0 0 1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 64, 64) as renderer:
    renderer.update_scene(data)
    assert renderer.render().max() > 0, "the picture is black"
"""

_ASK_SOUND = """
import sounddevice as sd
print(sd.get_portaudio_version()[1])
for device in sd.query_devices():
    print(device["max_output_channels"], device["max_input_channels"], device["name"])
"""


def is_there(module: str) -> bool:
    """Return whether a module can be found, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def ros(environment: Mapping[str, str] | None = None) -> Iterator[Finding]:
    """Yield findings on ROS 2: distribution, prefixes, middleware, domain, built interfaces."""
    section = "ROS 2"
    env = os.environ if environment is None else environment
    prefixes = [p for p in env.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    distro = env.get("ROS_DISTRO", "")
    sourced = bool(prefixes or distro)
    if not sourced and not is_there("rclpy"):
        fact = "not on this machine or not sourced; the core and this command work without it"
        yield Finding(section, "distribution", NOTE, fact, install_line("rclpy"))
        return
    fact = f"{distro or 'unnamed'} in {', '.join(prefixes)}"
    gone = [prefix for prefix in prefixes if not Path(prefix).is_dir()]
    if not sourced:
        fact = "rclpy is there, but no setup file has been sourced: ros2 finds no package"
        yield Finding(section, "distribution", NOTE, fact, install_line("rclpy"))
    elif not prefixes:
        fact = f"ROS_DISTRO={distro}, but AMENT_PREFIX_PATH is empty: ros2 finds no package"
        yield Finding(section, "distribution", PROBLEM, fact, install_line("rclpy"))
    elif gone:
        advice = f"{', '.join(gone)} is not there; source the setup file in a new terminal"
        yield Finding(section, "distribution", PROBLEM, fact, advice)
    else:
        yield Finding(section, "distribution", OK, fact)
    yield from _middleware(section, env, prefixes)
    yield _domain(section, env)
    yield _interfaces(section, prefixes)


def _middleware(section: str, env: Mapping[str, str], prefixes: list[str]) -> Iterator[Finding]:
    available = sorted(
        {
            path.name
            for prefix in prefixes
            for path in Path(prefix).glob("share/ament_index/resource_index/rmw_typesupport/rmw_*")
            if path.name != "rmw_implementation"  # only passes calls on to one of the others
        }
    )
    listed = ", ".join(available) or "none in the prefixes"
    asked = env.get("RMW_IMPLEMENTATION", "")
    chosen = f"RMW_IMPLEMENTATION={asked}" if asked else "default"
    outcome = try_python(_ASK_RMW)
    if outcome.ok:
        yield Finding(section, "rmw", OK, f"{outcome.output} ({chosen}); available: {listed}")
    elif asked and available and asked not in available:
        fact = f"{chosen} is not installed; available: {listed}"
        advice = f"sudo apt install ros-$ROS_DISTRO-{asked.replace('_', '-')}, or unset it"
        yield Finding(section, "rmw", PROBLEM, fact, advice)
    else:
        fact = f"rclpy does not load with Python {platform.python_version()}: {outcome.error}"
        yield Finding(section, "rmw", PROBLEM, fact, install_line("rclpy"))


def _interfaces(section: str, prefixes: list[str]) -> Finding:
    subject = "interfaces"
    if is_there("omni_ros.msg"):
        return Finding(section, subject, OK, "omni_ros messages are built")
    built = [p for p in prefixes if (Path(p) / "share/omni_ros/package.xml").is_file()]
    if built:
        source = Path(omni_ros.__file__).parent
        fact = f"built in {built[0]}, but Python takes omni_ros from {source}, where none are"
        advice = "run it from another folder, or take that one out of PYTHONPATH"
        return Finding(section, subject, NOTE, fact, advice)
    fact = "the omni_ros messages are not on the path: nodes cannot start"
    return Finding(section, subject, NOTE, fact, install_line("omni_ros.msg"))


def _domain(section: str, env: Mapping[str, str]) -> Finding:
    text = env.get("ROS_DOMAIN_ID", "")
    reach = env.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "")
    if env.get("ROS_LOCALHOST_ONLY", "0") == "1":
        reach = "LOCALHOST"
    if not text:
        fact, mark, advice = "ROS_DOMAIN_ID is not set: 0, shared with all who set none", OK, ""
    elif not text.isdigit() or int(text) > LAST_DOMAIN:
        fact, mark = f"ROS_DOMAIN_ID={text}", PROBLEM
        advice = f"expected a whole number from 0 to {SAFE_DOMAIN}: export ROS_DOMAIN_ID=0"
    elif int(text) > SAFE_DOMAIN:
        fact, mark = f"ROS_DOMAIN_ID={text}", NOTE
        advice = f"above {SAFE_DOMAIN} its ports can clash with other programs' on Linux"
    else:
        fact, mark, advice = f"ROS_DOMAIN_ID={text}", OK, ""
    return Finding(section, "domain", mark, fact + (f"; reach {reach}" if reach else ""), advice)


def python() -> Iterator[Finding]:
    """Yield findings on the interpreter and on what the core needs."""
    section = "Python"
    version = sys.version_info[:2]
    where = f"venv {sys.prefix}" if sys.prefix != sys.base_prefix else f"system, {sys.prefix}"
    fact = f"{platform.python_version()} ({where})"
    if PYTHON_FROM <= version <= PYTHON_TO:
        yield Finding(section, "interpreter", OK, fact)
    else:
        expected = f"{PYTHON_FROM[0]}.{PYTHON_FROM[1]} to {PYTHON_TO[0]}.{PYTHON_TO[1]}"
        yield Finding(section, "interpreter", NOTE, fact, f"tried only with {expected}")
    source = Path(omni_ros.__file__).resolve().parent
    yield Finding(section, "omni_ros", OK, f"{omni_ros.__version__} in {source}")
    yield _robots(section)
    for module, name in (("numpy", "numpy"), ("yaml", "pyyaml")):
        if not is_there(module):
            advice = install_line(name)
            yield Finding(section, name, PROBLEM, "not installed; the core needs it", advice)
            continue
        outcome = try_python(f"import {module}; print({module}.__version__)")
        if outcome.ok:
            yield Finding(section, name, OK, outcome.output)
        else:
            advice = f"pip install --force-reinstall {name}"
            yield Finding(section, name, PROBLEM, f"does not load: {outcome.error}", advice)


def _robots(section: str) -> Finding:
    folder = config_folder()
    names = [] if folder is None else sorted(path.stem for path in folder.glob("robots/*.yaml"))
    if not names:
        return Finding(section, "robot files", NOTE, "none found beside this copy of omni_ros")
    return Finding(section, "robot files", OK, f"{', '.join(names)} in {folder}/robots")


def backends() -> Iterator[Finding]:
    """Yield findings on what can run or export a policy here."""
    section = "Inference backends"
    if is_there("executorch"):
        version = package_version("executorch") or "of unknown version"
        outcome = try_python(_ASK_EXECUTORCH, timeout=90.0)
        if outcome.ok:
            fact = f"{version}; available: {outcome.output or 'only the portable kernels'}"
            yield Finding(section, "executorch", OK, fact)
        else:
            fact = f"{version} is installed but does not load: {outcome.error}"
            advice = "pip install --force-reinstall executorch"
            yield Finding(section, "executorch", PROBLEM, fact, advice)
    else:
        yield _absent(section, "executorch", "executorch")
    for module, name in (("torch", "torch"), ("llama_cpp", "llama-cpp-python")):
        if is_there(module):
            yield Finding(section, module, OK, package_version(name) or "of unknown version")
        else:
            yield _absent(section, module, module)


def world() -> Iterator[Finding]:
    """Yield findings on MuJoCo and on drawing without a screen."""
    section = "Simulated world"
    if not is_there("mujoco"):
        yield _absent(section, "mujoco", "mujoco")
        return
    yield Finding(section, "mujoco", OK, package_version("mujoco") or "of unknown version")
    asked = os.environ.get("MUJOCO_GL", "")
    # A desktop session draws through its screen; elsewhere a GPU or a software renderer is needed.
    screen = ["glfw"] if os.environ.get("DISPLAY") else []
    tries = [asked] if asked else [*screen, "egl", "osmesa"]
    errors = []
    for name in tries:
        outcome = try_python(_RENDER, environment={"MUJOCO_GL": name})
        if outcome.ok:
            how = "as MUJOCO_GL asks" if asked else f"export MUJOCO_GL={name} to make sure of it"
            yield Finding(section, "rendering", OK, f"{name} draws ({how})")
            return
        errors.append(f"{name}: {outcome.error}")
    advice = "sudo apt install libosmesa6 && export MUJOCO_GL=osmesa"
    yield Finding(section, "rendering", NOTE, "cameras cannot draw; " + "; ".join(errors), advice)


def audio() -> Iterator[Finding]:
    """Yield findings on sound: PortAudio if it can be used, else what the kernel lists."""
    section = "Audio"
    if is_there("sounddevice"):
        outcome = try_python(_ASK_SOUND)
        if outcome.ok:
            yield from _devices(section, outcome.output.splitlines())
            return
        advice = "sudo apt install libportaudio2"
        yield Finding(section, "sounddevice", NOTE, f"does not load: {outcome.error}", advice)
    else:
        yield _absent(section, "sounddevice", "sounddevice")
    cards = alsa_cards()
    if cards:
        yield Finding(section, "ALSA cards", OK, "; ".join(cards))
    else:
        yield Finding(section, "devices", NOTE, "none; speech can still go to a file or a topic")


def _devices(section: str, lines: list[str]) -> Iterator[Finding]:
    yield Finding(section, "PortAudio", OK, lines[0] if lines else "of unknown version")
    devices = [line.split(" ", 2) for line in lines[1:]]
    for subject, column in (("outputs", 0), ("inputs", 1)):
        names = [words[2] for words in devices if len(words) == 3 and words[column] != "0"]
        if names:
            yield Finding(section, subject, OK, "; ".join(names))
        else:
            yield Finding(section, subject, NOTE, "none")


def alsa_cards(root: Path = SYSTEM_ROOT) -> list[str]:
    """Return the names of the sound cards that the kernel lists."""
    lines = (read_text(root / "proc/asound/cards") or "").splitlines()
    # Each card has two lines; the first reads " 0 [PCH            ]: HDA-Intel - HDA Intel PCH".
    return [line.split("]: ", 1)[1].strip() for line in lines if "]: " in line]


def _absent(section: str, subject: str, module: str) -> Finding:
    return Finding(section, subject, NOTE, "not installed", install_line(module))
