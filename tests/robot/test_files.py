# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Finding robot files however omni_ros was installed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from omni_ros.robot import RobotConfigError, files


def make_robots(config: Path, *names: str) -> Path:
    (config / "robots").mkdir(parents=True)
    for name in names:
        text = "name: x\nplayer:\n  rate_hz: 50\n  output: joint_trajectory\njoints: []\n"
        (config / "robots" / f"{name}.yaml").write_text(text)
    return config


@pytest.mark.parametrize(
    ("package", "config"),
    [
        ("site-packages/omni_ros", "site-packages/omni_ros/config"),
        ("clone/omni_ros", "clone/config"),
        ("ws/lib/python3.11/site-packages/omni_ros", "ws/share/omni_ros/config"),
    ],
)
def test_the_folder_is_found_for_pip_source_and_colcon(tmp_path, package, config):
    (tmp_path / package).mkdir(parents=True)
    make_robots(tmp_path / config, "arm")
    assert files.config_folder(tmp_path / package) == tmp_path / config


def test_a_copy_without_configuration_has_no_folder(tmp_path):
    assert files.config_folder(tmp_path / "omni_ros") is None


@pytest.fixture
def two_robots(tmp_path, monkeypatch):
    config = make_robots(tmp_path / "config", "left", "right")
    monkeypatch.setattr(files, "config_folder", lambda: config)
    return config / "robots"


def test_a_robot_is_found_by_name_or_by_path(two_robots):
    assert files.robot_file("left") == two_robots / "left.yaml"
    assert files.robot_file(str(two_robots / "right.yaml")) == two_robots / "right.yaml"


@pytest.mark.parametrize("robot", ["", "middle"])
def test_a_robot_that_is_not_there_lists_those_that_are(two_robots, robot):
    with pytest.raises(RobotConfigError, match="left, right"):
        files.robot_file(robot)


def test_without_a_name_the_robot_is_the_one_of_the_simulated_world(two_robots):
    default = two_robots / "tabletop.yaml"
    default.touch()
    assert files.robot_file() == default


def test_a_robot_file_that_is_not_there_is_named():
    with pytest.raises(RobotConfigError, match="/no/such/robot.yaml"):
        files.robot_file("/no/such/robot.yaml")


def test_a_rate_changes_nothing_else_and_leaves_the_original_alone(two_robots, tmp_path):
    before = (two_robots / "left.yaml").read_text()
    copy = files.with_rate("left", 100.0, tmp_path)
    content, original = yaml.safe_load(copy.read_text()), yaml.safe_load(before)
    assert content["player"].pop("rate_hz") == 100.0
    original["player"].pop("rate_hz")
    assert content == original
    assert (two_robots / "left.yaml").read_text() == before
