# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Mapping files: read strictly, applied to a robot, held against metadata."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.openpi.agreement import objection, objections
from omni_ros.openpi.errors import SettingsError
from omni_ros.openpi.mapping import load_mapping, mapping_from_data
from omni_ros.openpi.observe import MissingPicture, RobotView
from omni_ros.openpi.wire import pack, unpack
from omni_ros.robot import load_robot

ROOT = Path(__file__).resolve().parents[2]
JOINTS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
DATA = yaml.safe_load("""
remote: {url: "ws://gpu:8000"}
observation:
  cameras:
    - {camera: front, key: [images, base_0_rgb], size: [224, 224]}
    - {camera: wrist, key: [images, left_wrist_0_rgb], size: [224, 224], optional: true}
  state:
    - {key: state, joints: [shoulder_pan, shoulder_lift, elbow_flex, wrist_flex, wrist_roll, gripper]}
  constants: {embodiment: arm, session_id: one}
actions:
  columns: [shoulder_pan, shoulder_lift, elbow_flex, wrist_flex, wrist_roll, gripper]
  rate_hz: 15
""")


def data(**changed):
    """The mapping with some entries replaced: `{"actions.rate_hz": 3}`."""
    copied = copy.deepcopy(DATA)
    for path, value in changed.items():
        *parents, last = path.split("__")
        target = copied
        for name in parents:
            target = target[int(name) if name.isdigit() else name]
        target[int(last) if last.isdigit() else last] = value
    return copied


@pytest.fixture(scope="module")
def robot():
    return load_robot(ROOT / "config" / "robots" / "tabletop.yaml")


def view(robot, **changed):
    return RobotView(mapping_from_data(data(**changed)), robot.joints, list(robot.cameras))


PICTURE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
POSITIONS = np.array([0.1, -0.2, 0.3, -0.4, 0.5, 0.6])


@pytest.mark.parametrize(
    "path", sorted((ROOT / "config" / "openpi").glob("*.yaml")), ids=lambda p: p.stem
)
def test_every_mapping_that_comes_along_is_one_for_the_default_robot(path, robot):
    mapping = load_mapping(path)
    assert mapping.remote is not None
    RobotView(mapping, robot.joints, list(robot.cameras)).observation(
        {"front": PICTURE, "wrist": PICTURE}, POSITIONS, "go")


def test_pictures_go_where_they_belong_in_the_size_that_is_wanted(robot):
    message = view(robot).observation({"front": PICTURE, "wrist": None}, POSITIONS, "pick up")
    assert set(message) == {"images", "state", "prompt", "embodiment", "session_id"}
    assert list(message["images"]) == ["base_0_rgb"]  # the optional one is left out
    assert message["images"]["base_0_rgb"].shape == (224, 224, 3)
    assert message["prompt"] == "pick up" and message["embodiment"] == "arm"
    assert unpack(pack(message))["state"].dtype == np.float32


def test_without_a_picture_that_has_to_be_there_nothing_is_asked(robot):
    with pytest.raises(MissingPicture, match="front"):
        view(robot).observation({"wrist": PICTURE}, POSITIONS, "go")


def test_a_position_that_is_not_finite_is_not_sent(robot):
    with pytest.raises(ValueError, match="not finite"):
        view(robot).observation({"front": PICTURE}, np.full(6, np.nan), "go")


@pytest.mark.parametrize(("layout", "shape"), [("HWC", (48, 64, 3)), ("CHW", (3, 48, 64)),
                                               ("BTHWC", (1, 1, 48, 64, 3))])  # fmt: skip
def test_a_picture_lies_as_it_is_wanted(robot, layout, shape):
    camera = {"camera": "front", "key": "observation/image", "layout": layout}
    made = view(robot, observation__cameras=[camera])
    assert made.observation({"front": PICTURE}, POSITIONS, "go")["observation/image"].shape == shape


@pytest.mark.parametrize(("layout", "shape"), [("D", (8,)), ("BD", (1, 8)), ("BTD", (1, 1, 8))])
def test_the_state_lies_as_it_is_wanted_and_is_padded_with_zeros(robot, layout, shape):
    part = {"key": ["state", "arm"], "joints": JOINTS, "layout": layout, "pad_to": 8}
    message = view(robot, observation__state=[part]).observation(
        {"front": PICTURE}, POSITIONS, "go")
    assert message["state"]["arm"].shape == shape
    assert np.allclose(message["state"]["arm"].ravel(), [*POSITIONS, 0, 0])


def test_a_prompt_can_be_sent_in_lists(robot):
    made = view(robot, observation__prompt={"key": ["language", "task"], "nested": True})
    assert made.observation({"front": PICTURE}, POSITIONS, "go")["language"] == {"task": [["go"]]}


def test_units_are_those_of_the_remote_policy_in_both_directions(robot):
    gripper = {
        "name": "gripper",
        "unit": "normalised",
        "normalised": {"policy": [0, 100], "joint": [0, 1]},
    }
    joints = [{"name": name, "unit": "deg"} for name in JOINTS[:5]] + [gripper]
    made = view(robot, observation__state__0__joints=joints, actions__columns=joints)
    sent = made.observation({"front": PICTURE}, POSITIONS, "go")["state"]
    assert np.allclose(sent, [*np.degrees(POSITIONS[:5]), 60.0])
    assert np.allclose(made.rows(sent[None].astype(np.float64)), POSITIONS[None])


@given(st.permutations(JOINTS), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_columns_are_put_into_the_robots_order(order, padding):
    robot = load_robot(ROOT / "config" / "robots" / "tabletop.yaml")
    made = view(robot, actions__columns=[*[None] * padding, *order])
    values = np.array([[0.0] * padding + [JOINTS.index(name) for name in order] + [9.0, 9.0]])
    assert made.rows(values).tolist() == [[0, 1, 2, 3, 4, 5]]


def test_offsets_and_velocities_are_scaled_and_not_moved(robot):
    gripper = {
        "name": "gripper",
        "unit": "normalised",
        "normalised": {"policy": [0, 100], "joint": [1, 3]},
    }
    made = view(
        robot, actions__columns=[*JOINTS[:5], gripper], actions__control_mode="position_offset"
    )
    assert made.rows(np.array([[0, 0, 0, 0, 0, 50.0]]))[0, 5] == pytest.approx(1.0)


def test_only_the_rows_that_shall_be_used_are(robot):
    assert view(robot, actions__rows=5).rows(np.zeros((50, 32))).shape == (5, 6)


def test_fewer_columns_than_joints_are_refused(robot):
    with pytest.raises(ValueError, match="names 6 columns"):
        view(robot).rows(np.zeros((50, 5)))


WRONG = {
    "unknown key 'observation.camera'": {"observation__camera": []},
    "actions.rate_hz": {"actions__rate_hz": 0},
    r"remote\.url": {"remote__url": "gpu"},
    r"size is \[224\]": {"observation__cameras__0__size": [224]},
    "layout is 'WHC'": {"observation__cameras__0__layout": "WHC"},
    "would both be sent": {"observation__cameras__1__key": ["images", "base_0_rgb"]},
    "and camera front would both": {"observation__prompt": {"key": "images"}},
    "the key is empty": {"observation__cameras__0__key": []},
    "expected at least one": {"observation__state__0__joints": []},
    "no more than pad_to": {"observation__state__0__pad_to": 3},
    "control_mode is 'torque'": {"actions__control_mode": "torque"},
    "has one twice": {"actions__keys": ["a", "a"]},
    "actions.horizon": {"actions__horizon": 0},
    "has 0, none of which has to be there": {"observation__cameras": []},
    "has 1, none of which has to be there": {"observation__cameras": [
        {"camera": "front", "key": "image", "optional": True}]},
    "pad_to is 1000000000; expected at most 4096": {"observation__state__0__pad_to": 10**9},
    "sent as endpoint, which servers": {"observation__constants": {"endpoint": "reset"}},
    "sent as request_id, which servers": {"observation__prompt": {"key": ["request_id", "a"]}},
    "unknown section 'replay'; known are observation, actions, remote, replan": {"replay": {}},
    r"cameras\[0\].size is 224, expected a list or null": {"observation__cameras__0__size": 224},
    r"joints\[0\] is 5, expected text or a mapping": {"observation__state__0__joints": [5]},
    r"remote\.url is 'ws://a\\nb'": {"remote__url": "ws://a\nb"},
    r"backoff_s is 'x'; expected a finite number": {"remote__backoff_s": "x"},
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_a_file_that_is_wrong_is_refused_with_the_key(text):
    with pytest.raises(SettingsError, match=text):
        mapping_from_data(data(**WRONG[text]))


AGAINST_THE_ROBOT = {
    "observation.cameras has side": {"observation__cameras__0__camera": "side"},
    "'elbow'; the robot's joints are": {"observation__state__0__joints": ["elbow"]},
    "missing: gripper": {"actions__columns": JOINTS[:5]},
    "named twice": {"actions__columns": [*JOINTS, "gripper"]},
    "unit is 'm'; the joint moves in rad": {"observation__state__0__joints": [
        {"name": "gripper", "unit": "m"}]},
    "belong together": {"observation__state__0__joints": [{"name": "gripper", "unit": "normalised"}]},
    "without unit": {"observation__state__0__joints": [
        {"name": "gripper", "normalised": {"policy": [0, 1], "joint": [0, 1]}}]},
    "two different ends": {"observation__state__0__joints": [
        {"name": "gripper", "unit": "normalised", "normalised": {"policy": [1, 1], "joint": [0, 1]}}]},
}  # fmt: skip


@pytest.mark.parametrize("text", AGAINST_THE_ROBOT)
def test_names_and_units_that_the_robot_does_not_have_are_refused(text, robot):
    with pytest.raises(SettingsError, match=text):
        view(robot, **AGAINST_THE_ROBOT[text])


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingsError, match="nowhere.yaml"):
        load_mapping(tmp_path / "nowhere.yaml")


FITS = {"image_resolution": [224, 224], "n_external_cameras": 1, "needs_wrist_camera": True,
        "needs_stereo_camera": False, "needs_session_id": False, "action_space": "joint_position",
        "action_horizon": 50, "action_dim": 32, "max_cameras": 3}  # fmt: skip


def test_metadata_that_agree_are_no_objection():
    assert objection(mapping_from_data(DATA), FITS) is None
    assert objection(mapping_from_data(DATA), {}) is None


OBJECTIONS = {
    "image_resolution [180, 320]": {"image_resolution": [180, 320]},
    "the server takes 1 (max_cameras)": {"max_cameras": 1},
    "wants 2 external ones and one at the wrist": {"n_external_cameras": 2},
    "stereo": {"needs_stereo_camera": True},
    "action_dim 5": {"action_dim": 5},
    "only joints can be played": {"action_space": "cartesian_pose"},
    "which is velocity": {"action_space": "joint_velocity"},
    "action_rate_hz 30": {"action_rate_hz": 30},
    "nothing is sent for the server's cameras top": {"cameras": ["base_0_rgb", "left_wrist_0_rgb", "top"]},
    "a camera is sent as 'base_0_rgb'": {"cameras": ["left_wrist_0_rgb"]},
    "the server takes 7": {"state_names": list("abcdefg")},
}  # fmt: skip


@pytest.mark.parametrize("text", OBJECTIONS)
def test_metadata_that_contradict_are_told_with_both_sides(text):
    found = objections(mapping_from_data(DATA), {**FITS, **OBJECTIONS[text]})
    assert any(text in each for each in found), found


def test_units_and_horizons_that_contradict_are_told():
    mapping = mapping_from_data(data(
        actions__columns=[{"name": "shoulder_pan", "unit": "rad"}, *JOINTS[1:]], actions__horizon=50,
        actions__keys=["arm"]))  # fmt: skip
    found = objection(
        mapping, {"action_units": ["deg"], "action_horizon": 40, "action_keys": ["hand"]}
    )
    for text in (
        "shoulder_pan in rad; the server says deg",
        "action_horizon 40",
        "action_keys 'hand'",
    ):
        assert text in found


ANY = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
                   lambda inner: st.lists(inner, max_size=3), max_leaves=5)  # fmt: skip


@given(st.dictionaries(st.sampled_from([*FITS, "cameras", "state_names", "action_units", "action_keys",
                                        "action_rate_hz"]), ANY))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_metadata_of_any_form_are_read_without_a_fault(metadata):
    assert isinstance(objections(mapping_from_data(DATA), metadata), list)


def test_degrees_of_a_joint_that_speaks_degrees_need_not_be_written_again(robot):
    so101 = load_robot(ROOT / "config" / "robots" / "so101.yaml")
    cameras = list(so101.cameras) or ["front", "wrist"]
    changed = {"observation__cameras": [{"camera": cameras[0], "key": "image"}],
               "observation__state__0__joints": list(so101.joint_names),
               "actions__columns": list(so101.joint_names)}  # fmt: skip
    made = RobotView(mapping_from_data(data(**changed)), so101.joints, cameras)
    positions = np.zeros(len(so101.joints))
    positions[0] = math.pi / 2
    sent = made.observation({cameras[0]: PICTURE}, positions, "go")["state"]
    assert sent[0] == pytest.approx(so101.to_policy(positions)[0]) == pytest.approx(90.0)
