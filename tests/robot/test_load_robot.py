# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot YAML: what is read, and what is refused with which words."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from omni_ros.robot import RobotConfigError, load_robot, robot_from_mapping

ROBOTS = Path(__file__).parents[2] / "config" / "robots"


def minimal() -> dict:
    joint = {"position": [-1.0, 1.0], "velocity": 1.0, "acceleration": 5.0, "jerk": 50.0}
    return {"name": "two", "joints": [{"name": "a", **joint}, {"name": "b", **joint}]}


def refused(change) -> str:
    data = copy.deepcopy(minimal())
    change(data)
    with pytest.raises(RobotConfigError) as error:
        robot_from_mapping(data)
    return str(error.value)


@pytest.mark.parametrize("path", sorted(ROBOTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_robot_loads_and_its_home_is_within_the_limits(path):
    robot = load_robot(path)
    assert robot.name == path.stem
    assert np.all(robot.home >= robot.lower + robot.margin)
    assert np.all(robot.home <= robot.upper - robot.margin)


def test_the_default_robot_has_six_joints_in_radians_and_two_cameras():
    robot = load_robot(ROBOTS / "tabletop.yaml")
    assert robot.joint_names == (
        "shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper",
    )  # fmt: skip
    assert robot.policy_units == ("rad",) * 6
    assert robot.cameras == {"front": "front/image_raw", "wrist": "wrist/image_raw"}
    assert robot.command_topic == "joint_trajectory_controller/joint_trajectory"
    np.testing.assert_allclose(robot.home, [0.0, -0.6, 0.35, 0.2, 0.0, 0.2])


def test_the_default_robot_explains_every_player_setting():
    from dataclasses import fields

    from omni_ros.robot import PlayerConfig

    text = (ROBOTS / "tabletop.yaml").read_text(encoding="utf-8")
    missing = [f.name for f in fields(PlayerConfig) if f"  {f.name}: " not in text]
    assert missing == []


def test_limits_are_read_only():
    robot = robot_from_mapping(minimal())
    with pytest.raises(ValueError):
        robot.upper[0] = 100.0


def test_an_error_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text("name: [", encoding="utf-8")
    with pytest.raises(RobotConfigError, match="broken.yaml.*is not YAML"):
        load_robot(path)


def test_a_missing_file_is_a_config_error(tmp_path):
    with pytest.raises(RobotConfigError, match="cannot be read"):
        load_robot(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("policy_unit", "degrees", "'degrees'; known are rad, deg, m, normalised"),
        ("unit", "deg", "'deg'; known are rad, m"),
        ("kind", "ball", "known are revolute, gripper, prismatic"),
        ("position", [-90.0, 90.0], r"looks like degrees.*write \[-1.5708, 1.5708\]"),
        ("position", [1.0, 1.0], "expected the first below the second"),
        ("position", [1.0, -1.0], "expected the first below the second"),
        ("position", [float("nan"), 1.0], "nan, expected a finite number"),
        ("position", 1.0, r"expected two numbers \[lower, upper\]"),
        ("velocity", 0.0, "velocity is 0, expected above 0: write its limit in rad/s"),
        ("acceleration", -1.0, "acceleration is -1, expected above 0"),
        ("jerk", float("inf"), "jerk is inf, expected a finite number"),
        ("jerk", "fast", "jerk is 'fast', expected a finite number"),
        ("margin", 1.0, "less than half of the range"),
        ("home", 2.0, "home is 2.0, expected -1 to 1"),
        ("speed", 1.0, "unknown key 'speed'"),
    ],
)
def test_a_wrong_joint_field_is_refused_with_what_to_write(key, value, words):
    import re

    text = refused(lambda data: data["joints"][1].update({key: value}))
    assert re.search(words, text), text
    assert "b" in text or "joints[1]" in text


def test_a_missing_limit_is_refused():
    assert "velocity is None" in refused(lambda data: data["joints"][0].pop("velocity"))


def test_degrees_are_refused_for_a_prismatic_joint():
    text = refused(lambda data: data["joints"][0].update(kind="prismatic", policy_unit="deg"))
    assert "joint a" in text and "'deg'" in text and "m, normalised" in text


def test_normalised_needs_both_ranges():
    text = refused(lambda data: data["joints"][0].update(policy_unit="normalised"))
    assert "normalised: {policy: [lo, hi], joint: [lo, hi]}" in text


def test_a_degenerate_normalised_range_is_refused():
    entry = {
        "policy_unit": "normalised",
        "normalised": {"policy": [0.0, 100.0], "joint": [0.5, 0.5]},
    }
    assert "normalised.joint is [0.5, 0.5]" in refused(lambda d: d["joints"][0].update(entry))


def test_repeated_joint_names_are_refused():
    assert "'a' is given 2 times" in refused(lambda data: data["joints"][1].update(name="a"))


def test_an_unknown_top_level_key_is_refused():
    assert "unknown key 'controller'" in refused(lambda data: data.update(controller={}))


def test_a_robot_without_joints_is_refused():
    assert "at least one joint" in refused(lambda data: data.update(joints=[]))


def test_an_unknown_topic_is_refused():
    assert "unknown key 'state'" in refused(lambda data: data.update(topics={"state": "x"}))


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"rate": 50.0}, "player.rate is not a setting"),
        ({"rate_hz": 0.0}, "player.rate_hz is 0.0, expected 1.0 to 1000.0"),
        ({"rate_hz": "fast"}, "player.rate_hz is 'fast', expected a finite float"),
        ({"output": "effort"}, "known are joint_trajectory, forward_position, forward_velocity"),
        ({"switching": "newest"}, "known are latest, blend, ensemble"),
        ({"max_rows": 0}, "player.max_rows is 0"),
        ({"require_heartbeat": 1}, "expected a finite bool"),
        ([], "expected a mapping"),
    ],
)
def test_a_wrong_player_setting_is_refused(section, words):
    assert words in refused(lambda data: data.update(player=section))


PLAIN = """
name: two
joints:
  - {name: a, position: [-1.0, 1.0], velocity: 1.0, acceleration: 5.0, jerk: 50.0}
  - {name: b, position: [-1.0, 1.0], velocity: 1.0, acceleration: 5.0, jerk: 50.0}
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: two", "name: two\nname: three", "the key 'name' twice"),
        ("velocity: 1.0,", "velocity: 1.0, velocity: 2.0,", "the key 'velocity' twice"),
        ("velocity: 1.0", "velocity: 010", "010 is read as an octal number"),
        ("velocity: 1.0", "velocity: 1:30", "1:30 is read as a sexagesimal number"),
        ("velocity: 1.0", "velocity: 1:30.5", "1:30.5 is read as a sexagesimal number"),
        ("velocity: 1.0", "velocity: " + "9" * 400, "joint a: velocity is 9999"),
        ("velocity: 1.0", "velocity: " + "9" * 5000, "cannot be read"),
        ("name: two", "name: two\nplayer: {rate_hz: " + "9" * 400 + "}", "player.rate_hz is 9999"),
        ("name: two", "name: two\nplayer: {max_rows: " + "9" * 400 + "}", "player.max_rows is 99"),
        ("name: two", "name: " + "[" * 5000, "nested deeper"),
    ],
    ids=lambda value: value[:24],
)
def test_yaml_that_reads_otherwise_than_it_looks_is_refused_with_the_file(
    tmp_path, old, new, words
):
    path = tmp_path / "two.yaml"
    path.write_text(PLAIN.replace(old, new), encoding="utf-8")
    with pytest.raises(RobotConfigError) as error:
        load_robot(path)
    assert str(error.value).startswith(f"{path}: ") and words in str(error.value)
    assert len(str(error.value)) < 400 + len(str(path))


def test_a_file_that_is_not_utf_8_is_refused_with_its_name(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_bytes(PLAIN.encode("utf-16"))
    with pytest.raises(RobotConfigError) as error:
        load_robot(path)
    assert str(error.value).startswith(f"{path}: ") and "not UTF-8" in str(error.value)


def test_policy_names_that_are_the_joint_names_in_another_order_are_refused():
    def swap(data):
        data["joints"][0]["policy_name"], data["joints"][1]["policy_name"] = "b", "a"

    assert "joint a: policy_name is 'b', the name of another joint" in refused(swap)


@pytest.mark.parametrize(
    "topic", ["a b", "/", "a//b", "1a", "a/1b", "a/", "joint-states", "a~b", "~a", "{", "ä", "a\n"]
)
@pytest.mark.parametrize("key", ["joint_states", "cameras"])
def test_a_topic_that_ros_would_refuse_is_refused(topic, key):
    words = refused(
        lambda data: data.update(topics={key: {"front": topic} if key == "cameras" else topic})
    )
    assert f"topics.{key}" in words and "ROS takes for no topic" in words


@pytest.mark.parametrize("topic", ["a", "/a/b2", "~/a", "{ns}/a_{node}", "_hidden/x"])
def test_a_topic_that_ros_takes_is_taken(topic):
    data = {**minimal(), "topics": {"joint_states": topic}}
    assert robot_from_mapping(data).topics["joint_states"] == topic
