# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from omni_ros.bundles.layout import JointName
from omni_ros.models.export.joints import Joints, parse_joints

PAN, JAW = JointName("pan", "deg"), JointName("jaw", "normalised")


def test_names_and_units_are_read_in_the_order_given():
    assert parse_joints("pan:deg, jaw:normalised") == Joints((PAN, JAW))


def test_raw_is_a_word_that_must_be_written():
    assert parse_joints("raw") == Joints("raw")


@pytest.mark.parametrize("given", [None, "", "  "])
def test_joints_that_are_not_given_are_asked_for(given):
    with pytest.raises(ValueError, match="joints are not given.*NAME:UNIT.*raw"):
        parse_joints(given)


def test_a_file_may_name_the_state_apart_from_the_actions(tmp_path):
    path = tmp_path / "joints.yaml"
    path.write_text(
        "joints: [{name: pan, unit: deg}]\n"
        "state: [{name: pan, unit: deg}, {name: jaw, unit: normalised}]\n"
    )
    assert parse_joints(str(path)) == Joints((PAN,), (PAN, JAW))
    assert parse_joints(path).of_width(1, 2) == ((PAN,), (PAN, JAW))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("pan", "'pan': expected a name and a unit"),
        ("pan:", "expected a name and a unit"),
        (":deg", "expected a name and a unit"),
        ("pan:degrees", "pan has the unit 'degrees': expected one of rad, deg, m, normalised"),
        ("pan:deg,pan:rad", "has pan twice"),
        ([], "expected a list"),
        ([5], "5.*expected a name and a unit"),
    ],
)
def test_a_wrong_list_is_refused_with_what_is_wrong(given, says):
    with pytest.raises(ValueError, match=says):
        parse_joints(given)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no list `joints:`"),
        ("joints: 5", "expected a list"),
        ("joints: raw\nspeed: 3", "unknown key 'speed'"),
        ("joints: [{name: pan}]", "expected name and unit"),
        ("joints: [", "cannot be read"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, says):
    path = tmp_path / "joints.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=says) as caught:
        parse_joints(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="none.yaml: cannot be read .No such file"):
        parse_joints(tmp_path / "none.yaml")


def test_another_number_than_the_checkpoints_is_refused_with_both():
    with pytest.raises(ValueError, match=r"2 joints were given \(pan, jaw\).*has 3 actions"):
        Joints((PAN, JAW)).of_width(3, 3)


def test_actions_names_stand_for_the_state_if_there_are_as_many():
    assert Joints((PAN, JAW)).of_width(2, 2) == ((PAN, JAW), (PAN, JAW))


def test_a_state_of_another_width_is_asked_for_and_not_guessed():
    with pytest.raises(ValueError, match="2 actions and 5 state values.*`state:`"):
        Joints((PAN, JAW)).of_width(2, 5)


def test_raw_joints_have_any_width():
    assert Joints("raw").of_width(2, 5) == ("raw", "raw")
