# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Observations as clients of all kinds send them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.openpi.errors import OpenPIError
from omni_ros.openpi.serving import TAKES, read_request
from omni_ros.openpi.wire import pack, unpack

POLICY = SimpleNamespace(cameras=("front", "wrist"), state_names=("a", "b", "c"), metadata={},
                         takes=TAKES)
FRONT = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
WRIST = 255 - FRONT
STATE = np.array([1, 2, 3], np.float32)

LAYOUTS = {
    "pi0": {"images": {"front": FRONT, "wrist": WRIST}, "state": STATE, "prompt": "go"},
    "long names": {"images": {"observation.images.front": FRONT, "observation.images.wrist": WRIST},
                   "state": STATE[None], "prompt": "go"},
    "flat": {"front": FRONT, "wrist": WRIST, "state": STATE, "prompt": np.array("go")},
    "openpi": {"observation/front": FRONT, "observation/wrist": WRIST, "observation/state": STATE,
               "prompt": "go"},
    "LeRobot": {"observation.images.front": FRONT.transpose(2, 0, 1)[None].astype(np.float32) / 255,
                "observation.images.wrist": WRIST.transpose(2, 0, 1)[None].astype(np.float32) / 255,
                "observation.state": STATE[None], "task": ["go"]},
    "GR00T": {"video": {"front": FRONT[None, None], "wrist": WRIST[None, None]},
              "state": {"c": [[3.0]], "a": np.array([[1.0]]), "b": np.float32(2)},
              "language": {"annotation.human.task_description": [["go"]]}},
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wired", [False, True])
def test_a_layout_is_read(layout, wired):
    value = unpack(pack(LAYOUTS[layout])) if wired else LAYOUTS[layout]
    request = read_request(value, POLICY)
    assert np.array_equal(request.images["front"], FRONT)
    assert np.array_equal(request.images["wrist"], WRIST)
    assert request.state.tolist() == [1, 2, 3] and request.prompt == "go"
    assert request.seed is None and request.noise is None and request.steps is None


def test_a_camera_given_as_none_is_masked():
    request = read_request({**LAYOUTS["pi0"], "images": {"front": FRONT, "wrist": None}}, POLICY)
    assert request.images["wrist"] is None
    flat = {"front": FRONT, "wrist": None, "state": STATE, "prompt": "go"}
    assert read_request(flat, POLICY).images["wrist"] is None


BASE = LAYOUTS["pi0"]
WRONG = {
    "no picture of wrist": {**BASE, "images": {"front": FRONT}},
    "a picture of the camera 'side'": {**BASE, "images": {"front": FRONT, "wrist": WRIST, "side": FRONT}},
    "a picture of the camera 'top'": {**BASE, "top": FRONT},
    "two pictures of the camera front": {**BASE, "observation.images.front": FRONT},
    r"expected \[height, width, 3\]": {**BASE, "images": {"front": FRONT[..., :2], "wrist": WRIST}},
    "expected 0 to 1, or uint8": {**BASE, "images": {"front": FRONT * 1.0, "wrist": WRIST}},
    "floats from nan": {**BASE, "images": {"front": np.full((2, 2, 3), np.nan), "wrist": WRIST}},
    "is int32; expected uint8": {**BASE, "images": {"front": FRONT.astype(np.int32), "wrist": WRIST}},
    "expected an array": {**BASE, "images": {"front": "jpeg", "wrist": WRIST}},
    "no `state`": {key: value for key, value in BASE.items() if key != "state"},
    r"has the shape \[4\]; expected \[3\]: a, b, c": {**BASE, "state": np.zeros(4)},
    "is not finite": {**BASE, "state": np.array([1, np.nan, 2])},
    "not finite; expected a number for every": {**BASE, "state": np.array([1, 1e300, 2])},  # not in f32
    "expected numbers": {**BASE, "state": "home"},
    "missing: b, c": {**BASE, "state": {"a": 1.0}},
    "several values": {**BASE, "state": {"a": [1, 2], "b": 1, "c": 1}},
    "the prompt is nothing": {key: value for key, value in BASE.items() if key != "prompt"},
    "the prompt is a list of 2": {**BASE, "prompt": ["a", "b"]},
    "characters": {**BASE, "prompt": "x" * 5000},
    "`seed` is -1": {**BASE, "seed": -1},
    "`seed` is True": {**BASE, "seed": True},
    "`seed` is 1.0": {**BASE, "seed": 1.0},
    "`num_inference_steps` is 0": {**BASE, "sampling_params": {"num_inference_steps": 0}},
    "`num_inference_steps` is '3'": {**BASE, "num_inference_steps": "3"},
    "`noise`": {**BASE, "noise": "loud"},
    "expected a map": [1],
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_does_not_fit_is_refused_and_said(text):
    with pytest.raises(OpenPIError, match=text):
        read_request(WRONG[text], POLICY)


@pytest.mark.parametrize("extra", [{"seed": 1}, {"noise": np.zeros((4, 8))}, {"stamp_ns": 5},
                                   {"sampling_params": {"num_inference_steps": 3}}])  # fmt: skip
def test_what_a_policy_does_not_take_is_refused_and_not_ignored(extra):
    fixed = SimpleNamespace(**{**vars(POLICY), "takes": ()})
    with pytest.raises(OpenPIError, match="does not take"):
        read_request({**BASE, **extra}, fixed)
    assert read_request(BASE, fixed).seed is None


def test_keys_of_other_servers_are_passed_over():
    extra = {"embodiment": "x", "endpoint": "infer", "reset": True, "max_tokens": 3}
    assert read_request({**BASE, **extra}, POLICY).prompt == "go"


KEYS = ["images", "video", "state", "observation.state", "prompt", "task", "language", "seed", "noise",
        "sampling_params", "front", "observation/front", "session_id", "stamp_ns"]  # fmt: skip
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats() | st.text(max_size=5)
    | st.sampled_from([FRONT, STATE, WRIST[None], np.array("go"), np.zeros((0, 3)), np.float32(1)]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["front", "wrist", "a", "b", "c", "num_inference_steps"]), inner,
                      max_size=3), max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), ANY, max_size=8))
@settings(max_examples=300, deadline=None)
def test_any_map_is_read_or_refused(value):
    try:
        request = read_request(value, POLICY)
    except OpenPIError:
        return
    assert request.state.shape == (3,) and isinstance(request.prompt, str)
