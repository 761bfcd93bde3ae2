# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A pip install on a machine with neither ROS nor PyTorch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ABSENT = ("rclpy", "torch", "executorch", "mujoco")
SOURCES = ("setup.py", "omni_ros", "config", "models", "native", "README.md", "LICENSE", "msg")

#: The sides of commands that talk to ROS or simulate; imported only once that is known to be there.
NEEDS_MORE = (
    "omni_ros.cli.bridge_probe", "omni_ros.cli.player_probe", "omni_ros.cli.talking_graph", "omni_ros.cli.demo_observer",
    "omni_ros.cli.demo_recorder", "omni_ros.cli.demo_report", "omni_ros.cli.tabletop_blank", "omni_ros.cli.tabletop_episode",
    "omni_ros.cli.tabletop_expert", "omni_ros.cli.tabletop_graph",
    "omni_ros.replay.pytest_plugin",
)

#: Rooms that are for those who have mujoco, or torch.
APART = ("omni_ros.world.", "omni_ros.models.")

pytestmark = pytest.mark.slow


def clean_environment() -> dict[str, str]:
    """Return an environment in which nothing of a sourced ROS is left."""
    dropped = ("PYTHON", "AMENT_", "COLCON_", "CMAKE_", "ROS_", "RMW_", "LD_LIBRARY_PATH")
    return {key: value for key, value in os.environ.items() if not key.startswith(dropped)}


def run(*command: object, check: bool = True) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=240,
        env=clean_environment(),
        cwd="/",
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """Install a copy of the sources into a fresh venv; return the venv's bin folder.

    A copy, since setuptools leaves build/ and an egg-info where it builds.
    """
    folder = tmp_path_factory.mktemp("pip_install")
    sources = folder / "sources"
    sources.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, sources / name, ignore=ignore)
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, sources / name)
    base = getattr(sys, "_base_executable", sys.executable)
    run(base, "-m", "venv", folder / "venv")
    binaries = folder / "venv/bin"
    run(binaries / "python", "-m", "pip", "install", "-q", sources)
    return binaries


@pytest.mark.parametrize("module", ABSENT)
def test_the_bare_machine_really_lacks(bare, module):
    done = run(bare / "python", "-c", f"import {module}", check=False)
    assert done.returncode != 0 and "ModuleNotFoundError" in done.stderr


def test_every_core_module_imports_without_ros_and_pytorch(bare):
    code = f"""
import importlib, pkgutil, sys, omni_ros
for found in pkgutil.walk_packages(omni_ros.__path__, "omni_ros."):
    if found.name not in {NEEDS_MORE} and not found.name.startswith({APART}):
        importlib.import_module(found.name)
print(sorted(set(sys.modules) & set({ABSENT})))
"""
    assert run(bare / "python", "-c", code).stdout.strip() == "[]"


def test_omni_shows_its_help_and_version(bare):
    assert "doctor" in run(bare / "omni", "--help").stdout
    version = run(bare / "python", "-c", "import omni_ros; print(omni_ros.__version__)").stdout
    assert run(bare / "omni", "--version").stdout == f"omni {version}"


def test_the_version_pip_knows_is_the_packages(bare):
    code = (
        "import omni_ros; from importlib.metadata import version;"
        "assert version('omni_ros') == omni_ros.__version__"
    )
    run(bare / "python", "-c", code)


def test_the_doctor_finds_no_problem_on_a_machine_that_has_nothing(bare):
    document = json.loads(run(bare / "omni", "doctor", "--json").stdout)
    assert document["problems"] == 0
    facts = {finding["subject"]: finding for finding in document["findings"]}
    assert facts["executorch"]["advice"] == "pip install executorch"
    assert facts["distribution"]["mark"] == "note"


def test_robot_files_come_along(bare):
    code = (
        "from omni_ros.robot.files import config_folder;"
        "print(*sorted(p.name for p in config_folder().glob('robots/*.yaml')))"
    )
    names = run(bare / "python", "-c", code).stdout.split()
    assert names == sorted(path.name for path in (ROOT / "config/robots").glob("*.yaml"))


def test_a_missing_backend_is_named_with_the_line_to_type(bare):
    code = "from omni_ros.requirements import require; require('executorch', 'to run a policy')"
    done = run(bare / "python", "-c", code, check=False)
    assert "to run a policy" in done.stderr and "pip install executorch" in done.stderr


def test_the_bench_of_the_player_asks_for_ros(bare):
    done = run(bare / "omni", "bench", "player", check=False)
    assert done.returncode == 2
    assert "rclpy" in done.stderr and "Traceback" not in done.stderr
