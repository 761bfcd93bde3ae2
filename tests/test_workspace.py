# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The built workspace: whose Python runs, what the package declares, and numpy of either kind."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
#: The last numpy before 2, which an older ROS brings along.
OLD_NUMPY = "1.26.4"

built = pytest.mark.skipif(
    not (ROOT / "install" / "local_setup.bash").exists(), reason="no workspace built here")


# -- whose Python --------------------------------------------------------------------------------


def run(*command: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=120, cwd="/", env={"HOME": str(Path.home()), **environment})


@pytest.fixture(scope="module")
def foreign_path(tmp_path_factory) -> str:
    """A PATH whose python is not ours, and says so with status 97."""
    folder = tmp_path_factory.mktemp("foreign")
    for name in ("python", "python3"):
        (folder / name).write_text("#!/bin/sh\nexit 97\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@built
def test_ros2_run_uses_the_venv_whatever_python_the_path_has(foreign_path):
    done = run(VENV / "bin" / "ros2", "run", "omni_ros", "omni", "--help", PATH=foreign_path)
    assert done.returncode == 0, done.stderr
    assert "doctor" in done.stdout


@built
def test_the_doctor_run_by_ros2_finds_the_venv_and_what_only_it_has(foreign_path):
    done = run(VENV / "bin" / "ros2", "run", "omni_ros", "omni", "doctor", "--json",
               PATH=foreign_path)
    facts = {finding["subject"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert str(VENV) in facts["interpreter"]["fact"]
    assert facts["mujoco"]["mark"] == "ok"


@built
def test_every_executable_names_the_venvs_python():
    programs = list((ROOT / "install" / "omni_ros" / "lib" / "omni_ros").iterdir())
    assert {"omni", "world", "action_player", "scripted_policy", "lifecycle_manager"} <= {
        program.name for program in programs}
    for program in programs:
        assert program.read_text().splitlines()[0] == f"#!{VENV}/bin/python", program.name


# -- numpy 1 and 2 -------------------------------------------------------------------------------

PIXELS = """
import hashlib, json, sys
from types import SimpleNamespace
import numpy as np
from omni_ros import images

assert "cv_bridge" not in sys.modules
result = {"numpy": np.__version__}
values = np.random.RandomState(0)  # a stream that is frozen over numpy's versions
wide = {"mono16": 2, "rgba8": 4, "bgra8": 4, "rgb8": 3, "bgr8": 3, "mono8": 1}
for encoding in images.ENCODINGS:
    for padding in (0, 7):
        step = 100 * wide.get(encoding, 2) + padding
        data = values.randint(0, 256, 50 * step).astype(np.uint8).tobytes()
        for big in (0, 1):
            msg = SimpleNamespace(width=100, height=50, step=step, encoding=encoding,
                                  is_bigendian=big, data=data)
            rgb = images.to_rgb(msg)
            key = f"{encoding}/{padding}/{big}"
            result[key] = [str(rgb.dtype), list(rgb.shape),
                           hashlib.sha256(np.ascontiguousarray(rgb).tobytes()).hexdigest()]
            if encoding in ("rgb8", "bgr8", "rgba8", "bgra8", "mono8"):
                back = SimpleNamespace()
                images.fill(back, rgb, encoding=encoding)
                result[key + "/back"] = hashlib.sha256(bytes(back.data)).hexdigest()
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def old_numpy() -> Path:
    """A folder with numpy 1, kept so that a second run fetches nothing."""
    if sys.version_info >= (3, 13):
        pytest.skip(f"numpy {OLD_NUMPY} has no wheels for Python 3.13 and later")
    folder = Path(sys.prefix) / "test_cache" / f"numpy-{OLD_NUMPY}"
    if not (folder / "numpy" / "version.py").exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
             "--disable-pip-version-check", "--only-binary=:all:", "--target", str(folder),
             f"numpy=={OLD_NUMPY}"], check=True, timeout=240)
    return folder


def pixels(*folders: Path) -> dict:
    path = os.pathsep.join(str(folder) for folder in (*folders, ROOT))
    done = run(sys.executable, "-c", PIXELS, PYTHONPATH=path, PATH=os.environ["PATH"],
               PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_images_have_the_same_pixels_under_numpy_1_and_2(old_numpy):
    old, new = pixels(old_numpy), pixels()
    assert old.pop("numpy") == OLD_NUMPY and new.pop("numpy") != OLD_NUMPY
    assert len(old) > 40
    assert old == new


# -- names that are rclpy's ----------------------------------------------------------------------


def node_classes(files: list[Path]) -> list[tuple[Path, ast.ClassDef]]:
    """Classes of nodes, and those that are mixed into them."""
    classes = [(file, node, {ast.unparse(base).rpartition(".")[2] for base in node.bases})
               for file in files for node in ast.walk(ast.parse(file.read_text()))
               if isinstance(node, ast.ClassDef)]
    names = {"Node", "LifecycleNode"}
    nodes = [c for c in classes if names & c[2]]
    mixed_in = set().union(*(bases for _, _, bases in nodes)) - names
    return [(file, node) for file, node, bases in classes if names & bases or node.name in mixed_in]


def assigned_attributes(files: list[Path]) -> list[tuple[Path, str, int]]:
    """Attributes that nodes set on themselves: file, name, line."""
    found = []
    for file, node in node_classes(files):
        found += [
            (file, target.attr, target.lineno) for target in ast.walk(node)
            if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
            and isinstance(target.value, ast.Name) and target.value.id == "self"]
    return found


def test_no_node_overwrites_an_attribute_of_rclpys():
    # A node that kept its services in `_services` took them out of the executor's sight.
    rclpy = pytest.importorskip("rclpy")
    from rclpy.lifecycle import LifecycleNode

    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        node = LifecycleNode("names", context=context)
        taken = set(dir(node))
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
    assert "_services" in taken
    files = sorted((ROOT / "nodes").glob("*.py"))
    clashes = [f"{file.name}:{line}: self.{name}"
               for file, name, line in assigned_attributes(files) if name in taken]
    assert not clashes


def test_the_scan_for_names_sees_nodes_and_what_is_mixed_into_them():
    seen = {(file.name, name) for file, name, _ in assigned_attributes(
        [ROOT / "nodes" / "action_player.py", ROOT / "nodes" / "_player_tick.py"])}
    assert {("action_player.py", "_requests"), ("_player_tick.py", "_status_due_ns")} <= seen


# -- package.xml ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def manifest() -> ElementTree.Element:
    return ElementTree.parse(ROOT / "package.xml").getroot()


def test_package_xml_has_what_format_3_asks_for(manifest):
    assert manifest.tag == "package" and manifest.get("format") == "3"
    for tag in ("name", "version", "description", "maintainer", "license"):
        assert (manifest.findtext(tag) or "").strip(), tag
    assert manifest.findtext("export/build_type") == "ament_cmake"
    assert manifest.findtext("member_of_group") == "rosidl_interface_packages"


def test_package_xml_is_read_by_the_ros_tools():
    parser = pytest.importorskip("catkin_pkg.package")
    found = parser.parse_package(str(ROOT / "package.xml"))
    assert found.name == "omni_ros"
    found.validate()


def test_versions_of_package_xml_and_python_agree(manifest):
    import omni_ros

    assert manifest.findtext("version") == omni_ros.__version__


def imported_packages(folder: Path) -> set[str]:
    """Top-level names that the Python files below a folder import."""
    names = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.split(".")[0])
    return names


def test_every_ros_package_that_is_imported_is_declared(manifest):
    index = pytest.importorskip("ament_index_python")
    known = set(index.get_packages_with_prefixes()) - {"omni_ros"}
    imported = {name for folder in ("omni_ros", "nodes", "launch")
                for name in imported_packages(ROOT / folder)}
    declared = {element.text for tag in ("depend", "exec_depend")
                for element in manifest.iter(tag)}
    assert imported & known, "found no import of a ROS package: the scan is broken"
    assert not (imported & known) - declared


def test_every_package_of_the_interfaces_is_declared(manifest):
    used = set()
    for file in (*ROOT.glob("msg/*.msg"), *ROOT.glob("srv/*.srv"), *ROOT.glob("action/*.action")):
        used |= set(re.findall(r"^(\w+)/\w+(?:\[.*?\])? ", file.read_text(), re.MULTILINE))
    assert used - {"omni_ros"} <= {element.text for element in manifest.iter("depend")}
