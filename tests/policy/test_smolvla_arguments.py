# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked of a policy is looked at before it computes, and what it answers before it goes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from omni_ros.policy.observation import Observation
from omni_ros.policy.smolvla import SmolVLAPolicy
from omni_ros.policy.turns import InUse

TASK = "pick up the red cube and place it in the bin"


@pytest.fixture
def policy(run_bundle) -> SmolVLAPolicy:
    return run_bundle("smolvla_given")


@pytest.fixture
def idle(policy, monkeypatch) -> SmolVLAPolicy:
    """The policy, none of whose programs may run."""
    def run(self):
        pytest.fail("a program ran")

    monkeypatch.setattr(type(policy.head.program), "run", run)
    return policy


def picture(*shape: int) -> np.ndarray:
    return np.full(shape or (96, 128, 3), 90, np.uint8)


def observe(**changed) -> Observation:
    given = {"images": {"top": picture(), "wrist": picture()}, "state": np.zeros(6), "stamp_ns": 5}
    return Observation(**{**given, **changed})


@pytest.mark.parametrize(("images", "words"), [
    ({"top": picture(), "wrist": picture(96, 128, 4)}, r"camera wrist: image is uint8 \[96, 128"),
    ({"top": picture(), "wrist": picture(1, 1000, 3)}, "camera wrist: .* too narrow"),
    ({"top": picture(), "wrist": picture(0, 0, 3)}, "camera wrist: .* at least 1 pixel"),
    ({"top": picture(), "wrist": [[[1, 2, 3]]]}, "camera wrist: image is list"),
    ([], "images are list; expected a mapping of top, wrist"),
    (None, "images are NoneType"),
])
def test_every_picture_is_looked_at_before_a_program_runs(idle, images, words):
    with pytest.raises(ValueError, match=words):
        idle.infer(observe(images=images), TASK, seed=1)


@pytest.mark.parametrize("state", [
    None, "abc", ["1"] * 6, {}, np.zeros(6, complex), np.zeros(6, bool), [[0], [0, 0]],
    np.full(6, 1e39), 3.0,
], ids=["nothing", "text", "texts", "mapping", "complex", "flags", "ragged", "huge", "scalar"])
def test_a_state_that_is_no_row_of_numbers_is_refused(idle, state):
    with pytest.raises(ValueError, match="the state "):
        idle.infer(observe(state=state), TASK, seed=1)


@pytest.mark.parametrize("instruction", [None, 3, b"go"])
def test_an_instruction_that_is_no_text_is_refused(idle, instruction):
    with pytest.raises(TypeError, match="the instruction is .*expected text"):
        idle.infer(observe(), instruction, seed=1)


@pytest.mark.parametrize("seed", [1.5, "a", True])
def test_a_seed_that_is_no_integer_is_refused(idle, seed):
    with pytest.raises(TypeError, match="seed is .*expected an integer"):
        idle.infer(observe(), TASK, seed=seed)


@pytest.mark.parametrize("stamp", [1.5, None])
def test_a_stamp_that_is_no_integer_is_refused(idle, stamp):
    with pytest.raises(TypeError, match="stamp_ns is .*expected an integer"):
        idle.infer(observe(stamp_ns=stamp), TASK, seed=1)


@pytest.mark.parametrize("noise", [
    np.full((50, 32), 1e39), np.zeros((50, 32), complex), np.full((50, 32), None),
], ids=["huge", "complex", "objects"])
def test_noise_that_is_no_float32_is_refused(idle, noise):
    with pytest.raises(ValueError, match="noise "):
        idle.infer(observe(), TASK, noise=noise)


@pytest.mark.parametrize("leftover", [
    np.zeros((10, 5)), np.zeros((10, 32)), np.zeros(6), np.full((10, 6), np.nan),
    np.full((10, 6), 1e39), "abc",
], ids=["narrow", "padded", "one row", "not finite", "huge", "text"])
def test_a_leftover_that_is_not_of_this_policy_is_refused(idle, leftover):
    with pytest.raises(ValueError, match="leftover "):
        idle.infer(observe(), TASK, seed=1, leftover=leftover, delay=1)


@pytest.mark.parametrize("guide", [lambda x, v, t: None, lambda x, v, t: v[:1]])
def test_a_guide_that_gives_no_velocity_is_refused(policy, guide):
    with pytest.raises(ValueError, match=r"guide's velocity is .*expected \[50, 32\]"):
        policy.infer(observe(), TASK, seed=1, guide=guide)


def test_actions_that_are_not_finite_in_robot_units_are_no_answer(policy, monkeypatch):
    monkeypatch.setattr(policy.head._normaliser, "_spread", np.full(6, 3e38, np.float32))
    with pytest.raises(FloatingPointError, match="actions that are not finite"):
        policy.infer(observe(), TASK, seed=1)


def test_a_call_during_a_call_is_refused_and_the_first_is_right(policy):
    wanted = policy.infer(observe(), TASK, seed=1).actions
    refused = []

    def other():
        for ask in (
            lambda: policy.infer(observe(), "close the door", seed=2),
            lambda: policy.backbone.set_prompt("close the door"),
            lambda: policy.encoder.encode(picture()),
            lambda: policy.head.set_valid(policy.backbone.valid * 0),
            policy.close,
        ):
            try:
                ask()
            except InUse as error:
                refused.append(str(error))

    def guide(x, v, t):
        if not refused:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join(30)
        return v

    result = policy.infer(observe(), TASK, seed=1, guide=guide)
    assert len(refused) == 5 and all("in use by another call" in text for text in refused)
    assert np.array_equal(result.actions, wanted)


def test_a_guide_cannot_ask_the_same_policy(policy):
    def guide(x, v, t):
        policy.infer(observe(), TASK, seed=2)

    with pytest.raises(InUse):
        policy.infer(observe(), TASK, seed=1, guide=guide)
    assert np.isfinite(policy.infer(observe(), TASK, seed=1).actions).all()
