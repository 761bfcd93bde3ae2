# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What training did to joints outside normalisation, and its way back."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.policy.conventions import Conventions

ARMS = 14


def aloha_state(value=0.3, gripper=0.5):
    state = np.full(ARMS, value, np.float32)
    state[[6, 13]] = gripper
    return state


def test_nothing_is_done_where_nothing_was():
    plain = Conventions()
    state, actions = np.ones(3, np.float32), np.ones((2, 3), np.float32)
    assert plain.plain and plain.state(state) is state
    assert plain.decode(actions, None) is actions and plain.encode(actions, None) is actions


@pytest.mark.parametrize("aloha", ["openpi", "lerobot"])
def test_aloha_negates_four_joints_and_leaves_eight(aloha):
    made = Conventions(aloha).state(aloha_state())
    signs = np.sign(np.delete(made, [6, 13]))
    assert signs.tolist() == [1, -1, -1, 1, 1, 1, 1, -1, -1, 1, 1, 1]


@pytest.mark.parametrize("aloha, low, high", [("openpi", 0.5476, 1.6296), ("lerobot", 0.4, 1.5)])
def test_a_gripper_becomes_the_motors_angle(aloha, low, high):
    """By the linkage's geometry: horn 22 mm, arm 36 mm, finger 18.44 to 58.00 mm."""
    for share in (0.0, 0.25, 0.5, 1.0):
        way = 0.01844 + share * (0.05800 - 0.01844)
        sine = (0.022**2 + way**2 - 0.036**2) / (2 * 0.022 * way)
        angle = np.arcsin(np.clip(sine, -1, 1))
        made = Conventions(aloha).state(aloha_state(gripper=share))
        assert made[6] == pytest.approx((angle - low) / (high - low), abs=1e-5)
        assert made[6] == made[13]


@pytest.mark.parametrize("aloha", ["openpi", "lerobot"])
def test_an_action_that_holds_the_gripper_is_where_the_follower_takes_it(aloha):
    """openpi's actions are angles less 0.5476; LeRobot's shares of 0.4 to 1.5."""
    actions = np.zeros((2, ARMS), np.float32)
    actions[:, [6, 13]] = 0.5
    angle = 0.5 + 0.5476 if aloha == "openpi" else 0.4 + 0.5 * 1.1
    made = Conventions(aloha).decode(actions, None)
    np.testing.assert_allclose(made[:, 6], (angle + 0.6213) / (1.4910 + 0.6213), rtol=1e-5)


@pytest.mark.parametrize("aloha", ["none", "openpi", "lerobot"])
@pytest.mark.parametrize("relative", [(), (True,) * 6 + (False,) + (True,) * 6 + (False,)])
def test_encoding_undoes_decoding(aloha, relative):
    rng = np.random.default_rng(0)
    conventions, state = Conventions(aloha, relative), aloha_state(0.2, 0.4)
    actions = rng.normal(size=(5, ARMS)).astype(np.float32)
    back = conventions.encode(conventions.decode(actions, state), state)
    np.testing.assert_allclose(back, actions, atol=2e-6)


def test_a_finger_beyond_the_linkage_has_the_nearest_angle():
    made = Conventions("openpi").state(aloha_state(gripper=-0.4662))
    assert np.isfinite(made).all()


def test_relative_actions_are_added_to_the_observations_state():
    """A delta chunk of +0.01: every row is 0.01 from the observation, not from the row before."""
    conventions = Conventions(relative=(True, True, False))
    state = np.array([0.5, -0.2, 9.0], np.float32)
    chunk = conventions.decode(np.full((4, 3), 0.01, np.float32), state)
    np.testing.assert_allclose(chunk, np.tile([0.51, -0.19, 0.01], (4, 1)), rtol=1e-6)


def test_relative_actions_without_a_state_are_refused():
    conventions = Conventions(relative=(True,))
    assert conventions.anchored
    with pytest.raises(ValueError, match="no state was given"):
        conventions.decode(np.zeros((2, 1), np.float32), None)


def test_an_old_plan_laid_on_a_new_observation_means_the_same_targets():
    """The arm has moved by 0.1: the rest of the plan is 0.1 less to go, and never goes further."""
    conventions = Conventions(relative=(True, False))
    then, now = np.array([1.0, 0.0], np.float32), np.array([1.1, 0.0], np.float32)
    targets = conventions.decode(np.full((3, 2), 0.3, np.float32), then)
    again = conventions.encode(targets, now)
    np.testing.assert_allclose(again, np.tile([0.2, 0.3], (3, 1)), atol=1e-6)
    np.testing.assert_allclose(conventions.decode(again, now), targets, atol=1e-6)


def test_constants_of_nobody_are_refused():
    with pytest.raises(ValueError, match="expected none, openpi, lerobot"):
        Conventions("trossen")
