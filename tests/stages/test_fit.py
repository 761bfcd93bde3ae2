# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros.bundles.layout import Camera, JointName
from omni_ros.robot import load_robot
from omni_ros.robot.files import robot_file
from omni_ros.stages import fit_robot

ROBOT = load_robot(robot_file("so101"))
NAMES = ROBOT.policy_names


def manifest(joints=None, state=None, cameras=None) -> SimpleNamespace:
    units = dict(zip(NAMES, ROBOT.policy_units))
    joints = joints if joints is not None else tuple(JointName(n, units[n]) for n in NAMES)
    names = cameras if cameras is not None else list(ROBOT.cameras)
    return SimpleNamespace(
        name="some", joints=joints, state_joints=joints if state is None else state,
        cameras=tuple(Camera(name, f"observation.images.{name}", 4, 4) for name in names))


def test_joints_are_matched_by_name_whatever_their_order():
    reversed_joints = tuple(reversed(manifest().joints))
    fit = fit_robot(manifest(joints=reversed_joints), ROBOT)
    assert fit.action_names == tuple(reversed(ROBOT.joint_names))
    assert list(fit.state) == list(reversed(range(len(NAMES))))


def test_the_state_is_in_the_policys_units_and_order():
    some = manifest(state=tuple(reversed(manifest().joints)))
    positions = ROBOT.home + 0.1
    state = fit_robot(some, ROBOT).state_of(positions, ROBOT)
    np.testing.assert_allclose(state, ROBOT.to_policy(positions)[::-1])


def test_a_state_may_have_fewer_joints_than_the_actions():
    some = manifest(state=manifest().joints[2:4])
    assert list(fit_robot(some, ROBOT).state) == [2, 3]


@pytest.mark.parametrize("change, said", [
    (lambda m: replace_joints(m, "raw"), "has raw joints"),
    (lambda m: replace_joints(m, m.joints[:-1]), f"moves no {ROBOT.joint_names[-1]}"),
    (lambda m: replace_joints(m, (JointName("tail", "rad"), *m.joints[1:])), "tail unknown"),
    (lambda m: replace_joints(m, (JointName(NAMES[0], "m"), *m.joints[1:])),
     rf"{NAMES[0]} in m \(robot YAML: "),
])
def test_what_does_not_fit_is_refused_with_both_sides(change, said):
    with pytest.raises(ValueError, match=said):
        fit_robot(change(manifest()), ROBOT)


def replace_joints(some: SimpleNamespace, joints) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(some), "joints": joints, "state_joints": joints})


def test_cameras_are_those_of_the_same_name_or_as_the_robot_maps_them():
    name = next(iter(ROBOT.cameras))
    assert fit_robot(manifest(cameras=[name]), ROBOT).cameras == {name: name}
    assert fit_robot(manifest(cameras=["eye"]), ROBOT, {"eye": name}).cameras == {"eye": name}


def test_a_camera_that_the_robot_does_not_have_is_refused_with_those_it_has():
    with pytest.raises(ValueError, match=r"eye \(eye\) missing") as caught:
        fit_robot(manifest(cameras=["eye"]), ROBOT)
    assert all(name in str(caught.value) for name in ROBOT.cameras)


def test_a_mapping_of_a_camera_that_the_bundle_does_not_have_is_refused():
    name = next(iter(ROBOT.cameras))
    with pytest.raises(ValueError, match="names nose"):
        fit_robot(manifest(), ROBOT, {"nose": name})


def test_a_robot_that_takes_velocities_is_refused():
    moving = replace(ROBOT, player=replace(ROBOT.player, output="forward_velocity"))
    with pytest.raises(ValueError, match="gives positions"):
        fit_robot(manifest(), moving)
