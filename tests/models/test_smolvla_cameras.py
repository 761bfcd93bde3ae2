# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cameras are called as the robot calls them, and a bundle may have some of them only."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from omni_ros.models.common.errors import CheckpointError  # noqa: E402
from omni_ros.models.common.cameras import camera_names, pick_cameras  # noqa: E402

ONE, TWO = "observation.images.camera1", "observation.images.camera2"
FRONT, WRIST = "observation.images.front", "observation.images.wrist"
NAMES = {ONE: "front", TWO: "wrist"}


def test_a_camera_is_called_as_the_key_that_is_renamed_to_it():
    assert camera_names((ONE, TWO), {FRONT: ONE}) == {ONE: "front", TWO: "camera2"}


def test_names_that_change_places_change_places():
    assert camera_names((FRONT, WRIST), {FRONT: WRIST, WRIST: FRONT}) == {
        FRONT: "wrist", WRIST: "front"}


def test_without_renames_a_camera_has_the_last_part_of_its_key():
    assert camera_names(("observation.image", TWO), {}) == {
        "observation.image": "image", TWO: "camera2"}


def test_what_is_no_picture_is_not_looked_at():
    assert camera_names((ONE,), {"observation.joints": "observation.state"}) == {ONE: "camera1"}


@pytest.mark.parametrize(("renames", "words"), [
    ({FRONT: "observation.images.camera3"}, "camera3, which is no camera of the checkpoint"),
    ({FRONT: ONE, WRIST: ONE}, "both observation.images.front and observation.images.wrist"),
    ({"observation.images.camera2": ONE}, f"calls both {ONE} and {TWO} camera2"),
])
def test_renames_that_leave_a_camera_in_doubt_are_refused(renames, words):
    with pytest.raises(CheckpointError, match=words):
        camera_names((ONE, TWO), renames)


@pytest.mark.parametrize(("wanted", "picked"), [
    (None, (ONE, TWO)), (1, (ONE,)), (2, (ONE, TWO)), (["wrist"], (TWO,)),
    (["wrist", "front"], (ONE, TWO)), ([TWO], (TWO,)),
])
def test_cameras_are_picked_by_number_name_or_key_in_the_networks_order(wanted, picked):
    assert pick_cameras(NAMES, wanted) == picked


@pytest.mark.parametrize("wanted", [0, 3, [], ["camera1"], ["front", "left"]])
def test_cameras_that_are_not_there_are_refused_with_those_that_are(wanted):
    with pytest.raises(CheckpointError, match="the checkpoint has front, wrist; expected"):
        pick_cameras(NAMES, wanted)
