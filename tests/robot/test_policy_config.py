# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Section `policy:` is left out or meant: what would move an arm wrongly is refused."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from omni_ros.robot import PolicyConfig, RobotConfigError, load_robot, require_policy
from omni_ros.robot.load import robot_from_mapping

ROBOTS = Path(__file__).resolve().parents[2] / "config" / "robots"


def robot(policy=None, **player):
    data = yaml.safe_load((ROBOTS / "tabletop.yaml").read_text(encoding="utf-8"))
    data.pop("policy")
    if policy is not None:
        data["policy"] = policy
    data["player"].update(player)
    return robot_from_mapping(data)


def test_the_table_top_robot_says_every_setting_and_explains_it():
    text = (ROBOTS / "tabletop.yaml").read_text(encoding="utf-8")
    section = text[text.index("\npolicy:"):text.index("\njoints:")]
    for field in fields(PolicyConfig):
        assert re.search(rf"^  (# )?{field.name}:", section, re.MULTILINE), field.name


@pytest.mark.parametrize("path", sorted(ROBOTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_robot_that_comes_along_has_a_policy_section_that_loads(path):
    assert require_policy(load_robot(path)).action_rate_hz > 0


def test_settings_not_given_have_the_documented_defaults():
    given = load_robot(ROBOTS / "tabletop.yaml").policy
    assert robot({"action_rate_hz": 15.0}).policy == given


def test_a_robot_without_the_section_is_not_set_up_for_a_learned_policy():
    arm = robot()
    assert arm.policy is None
    with pytest.raises(RobotConfigError, match="robot tabletop has no section policy.*action_rate_hz"):
        require_policy(arm)


def test_the_rate_has_to_be_said():
    with pytest.raises(RobotConfigError, match="policy.action_rate_hz is missing.*trained at"):
        robot({"execution_horizon": 4})


def test_a_row_takes_one_period_of_the_rate():
    assert robot({"action_rate_hz": 30}).policy.dt_ns == 33_333_333


@pytest.mark.parametrize(("field", "value"), [
    ("action_rate_hz", 0), ("action_rate_hz", math.nan), ("action_rate_hz", "15"),
    ("action_rate_hz", 1e9), ("action_rate_hz", None), ("action_rate_hz", True),
    ("execution_horizon", 0), ("execution_horizon", 8.0), ("execution_horizon", True),
    ("guidance", "RTC"), ("guidance", None), ("guidance", ["rtc"]), ("slop_s", -0.01),
    ("slop_s", math.inf), ("image_timeout_s", 0), ("joints_timeout_s", -1), ("life_s", 0),
    ("life_s", "long"), ("blind_std", -1), ("blind_std", 129), ("noise_seed", -1),
    ("noise_seed", 2**64), ("noise_seed", 1.5), ("cameras", ["front"]), ("cameras", {"front": "top"}),
    ("cameras", {"": "front"}), ("cameras", {5: "front"}), ("cameras", {"front": ["front"]}),
    ("cameras", {"a": "front", "b": "front"}),
])
def test_a_setting_that_cannot_be_is_refused_by_name(field, value):
    with pytest.raises(RobotConfigError, match=f"policy.{field}"):
        robot({"action_rate_hz": 15.0, field: value})


def test_an_unknown_setting_is_refused_with_the_known_ones():
    with pytest.raises(RobotConfigError, match="policy.'horizon' is not a setting; known are.*slop_s"):
        robot({"action_rate_hz": 15.0, "horizon": 8})


@pytest.mark.parametrize("section", [[], "yes", 15.0])
def test_a_section_that_is_no_mapping_is_refused(section):
    with pytest.raises(RobotConfigError, match="policy is .* expected a mapping"):
        robot(section)


@pytest.mark.parametrize("switching", ["latest", "blend"])
def test_guidance_goes_with_switching_to_the_newest_chunk(switching):
    arm = robot({"action_rate_hz": 15.0, "guidance": "rtc"}, switching=switching)
    assert arm.policy.guidance == "rtc"


def test_guidance_is_refused_where_old_chunks_are_averaged_in():
    with pytest.raises(RobotConfigError, match="guidance.*ensemble.*switching: latest"):
        robot({"action_rate_hz": 15.0, "guidance": "rtc"}, switching="ensemble")


def test_a_camera_of_the_policy_is_the_robots_of_that_name_unless_said_otherwise():
    policy = robot({"action_rate_hz": 15.0, "cameras": {"top": "front"}}).policy
    assert policy.robot_camera("top") == "front"
    assert policy.robot_camera("wrist") == "wrist"
