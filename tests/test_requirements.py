# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is said when an optional module is missing."""

from __future__ import annotations

import sys

import pytest
from omni_ros import requirements
from omni_ros.requirements import MissingDependency, require


@pytest.fixture
def no_ros(monkeypatch, tmp_path):
    monkeypatch.setattr(requirements, "ROS_ROOT", tmp_path)
    monkeypatch.delenv("ROS_DISTRO", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    return tmp_path


def install_ros(root, *names):
    for name in names:
        (root / name).mkdir()
        (root / name / "setup.bash").touch()


def hide(monkeypatch, *modules):
    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] in modules:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    for name in list(sys.modules):
        if name.partition(".")[0] in modules:
            monkeypatch.delitem(sys.modules, name)


def message(module, purpose="to test this"):
    with pytest.raises(MissingDependency) as caught:
        require(module, purpose)
    return str(caught.value)


def test_what_is_installed_is_returned():
    import json

    assert require("json", "to read") is json


@pytest.mark.parametrize("module", sorted(requirements.DEPENDENCIES))
def test_a_missing_module_names_package_purpose_and_the_line_to_type(monkeypatch, module):
    hide(monkeypatch, module)
    text = message(module, "to fly to the moon")
    dependency = requirements.DEPENDENCIES[module]
    assert "to fly to the moon" in text and f"PyPI: {dependency.pip}" in text
    assert f"Type: pip install {dependency.pip}" in text


def test_the_error_is_an_import_error_and_keeps_the_modules_name(monkeypatch):
    hide(monkeypatch, "executorch")
    with pytest.raises(ImportError) as caught:
        require("executorch.runtime", "to run a program")
    assert caught.value.name == "executorch"


def test_executorch_is_asked_for_without_what_a_robot_does_not_need(monkeypatch):
    hide(monkeypatch, "executorch")
    assert "pip install --no-deps executorch" in message("executorch")


def test_an_unknown_module_is_asked_for_by_its_own_name(monkeypatch):
    hide(monkeypatch, "some_module")
    assert "pip install some_module" in message("some_module.part")


def test_a_module_that_breaks_on_import_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_native.py").write_text("raise OSError('libportaudio.so.2: not found')")
    (tmp_path / "broken_inner.py").write_text("import no_such_inner_module")
    monkeypatch.syspath_prepend(tmp_path)
    for module, reason in (("broken_native", "libportaudio"), ("broken_inner", "no_such_inner")):
        text = message(module)
        assert "installed but does not load" in text and reason in text


def test_ros_that_is_installed_is_to_be_sourced(monkeypatch, no_ros):
    install_ros(no_ros, "humble", "jazzy")
    hide(monkeypatch, "rclpy")
    assert f"Type: source {no_ros}/jazzy/setup.bash" in message("rclpy")


def test_the_distribution_asked_for_is_the_one_to_source(monkeypatch, no_ros):
    install_ros(no_ros, "humble", "jazzy")
    monkeypatch.setenv("ROS_DISTRO", "humble")
    hide(monkeypatch, "rclpy")
    assert f"Type: source {no_ros}/humble/setup.bash" in message("rclpy")


def test_a_package_that_a_sourced_ros_lacks_is_to_be_installed(monkeypatch, no_ros):
    install_ros(no_ros, "jazzy")
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(no_ros / "jazzy"))
    hide(monkeypatch, "diagnostic_updater")
    assert "Type: sudo apt install ros-jazzy-diagnostic-updater" in message("diagnostic_updater")


def test_a_machine_without_ros_is_sent_to_the_set_up(monkeypatch, no_ros):
    hide(monkeypatch, "rclpy")
    assert "Type: make setup && source setup.bash" in message("rclpy")
