# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The limiter: what it keeps, how it gets there, and that joints go together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.player.limiter import Limiter
from omni_ros.player.reasons import Reason

TOLERANCE = 1e-6


def drive(limiter, target, steps, velocity=False):
    """Follow target(t) for some steps; returns positions, velocities (steps, n) and reasons."""
    span = limiter.span_s
    positions, velocities, reasons = [], [], []
    for step in range(steps):
        t = step * limiter.period_s
        targets = np.array([target(t - span), target(t), target(t + span)])
        follow = limiter.follow_velocity if velocity else limiter.follow
        limiter.motion = follow(limiter.motion, targets)
        positions.append(limiter.motion.p)
        velocities.append(limiter.motion.v)
        reasons.append(limiter.reasons.copy())
    return np.array(positions), np.array(velocities), np.array(reasons)


def assert_within(limiter, start, positions):
    path = np.vstack((start, start, start, positions))
    v = np.diff(path, axis=0) / limiter.period_s
    a = np.diff(v, axis=0) / limiter.period_s
    j = np.diff(a, axis=0) / limiter.period_s
    assert (positions >= limiter.lower).all() and (positions <= limiter.upper).all()
    for values, limit in ((v, limiter.velocity), (a, limiter.acceleration), (j, limiter.jerk)):
        assert (np.abs(values) <= limit * (1 + TOLERANCE)).all()


@pytest.fixture
def limiter(tabletop):
    limiter = Limiter(tabletop)
    limiter.rest_at(tabletop.home)
    return limiter


def test_a_far_target_is_reached_without_overshoot_and_within_all_limits(limiter, tabletop):
    goal = tabletop.home + [1.0, 0.5, -0.5, 0.25, 2.0, 1.0]
    positions, _, _ = drive(limiter, lambda t: goal, 150)
    assert_within(limiter, tabletop.home, positions)
    np.testing.assert_allclose(positions[-1], goal, atol=1e-4)
    way = np.sign(goal - tabletop.home)
    assert ((positions - goal) * way <= 1e-6).all()


def test_a_limited_move_of_the_arm_keeps_its_direction(limiter, tabletop):
    way = np.array([1.0, 0.5, -0.5, 0.3, 2.0, 0.0])
    positions, _, _ = drive(limiter, lambda t: tabletop.home + way, 80)
    done = ((positions - tabletop.home) / np.where(way, way, 1.0))[:, :5]
    assert np.abs(done - done[:, 4:]).max() < 0.01


def test_the_gripper_neither_waits_for_the_arm_nor_slows_it(limiter, tabletop):
    way = np.array([1.7, 0.0, 0.0, 0.0, 0.0, 1.0])
    together, _, _ = drive(limiter, lambda t: tabletop.home + way, 60)
    limiter.rest_at(tabletop.home)
    alone, _, _ = drive(limiter, lambda t: tabletop.home + way * [0, 0, 0, 0, 0, 1], 60)
    np.testing.assert_array_equal(together[:, 5], alone[:, 5])
    limiter.rest_at(tabletop.home)
    arm, _, _ = drive(limiter, lambda t: tabletop.home + way * [1, 1, 1, 1, 1, 0], 60)
    np.testing.assert_array_equal(together[:, :5], arm[:, :5])


def test_a_path_within_the_limits_is_followed_closely_and_called_unlimited(limiter, tabletop):
    def path(t):
        return tabletop.home + 0.3 * np.sin(np.pi * t)

    positions, _, reasons = drive(limiter, path, 200)
    wanted = np.array([path((step + 1) * limiter.period_s) for step in range(200)])
    assert np.abs(positions - wanted)[50:].max() < 0.002
    assert not reasons[50:].any()


def test_noise_from_row_to_row_is_averaged_not_amplified(limiter, tabletop):
    noise = np.random.default_rng(0).normal(0.0, 0.01, (400, 6))

    def path(t):
        row = max(t * 30.0 + 10.0, 0.0)
        k = int(row)
        return tabletop.home + noise[k] + (row - k) * (noise[k + 1] - noise[k])

    positions, _, _ = drive(limiter, path, 400)
    assert_within(limiter, tabletop.home, positions)
    assert (positions[50:] - tabletop.home).std() < 0.01


def test_a_joint_whose_target_is_out_of_reach_does_not_stop_the_others(limiter, tabletop):
    def path(t):
        target = tabletop.home + 0.3 * np.sin(np.pi * t)
        target[0] = 50.0
        return target

    positions, _, reasons = drive(limiter, path, 300)
    assert_within(limiter, tabletop.home, positions)
    wanted = np.array([path((step + 1) * limiter.period_s) for step in range(300)])
    assert np.abs(positions - wanted)[150:, 1:].max() < 0.002
    assert positions[-1, 0] == pytest.approx(limiter.upper[0], abs=1e-4)
    assert (reasons[:, 0] == Reason.POSITION_LIMIT).all()


def test_a_joint_that_starts_outside_moves_only_inward(limiter, tabletop):
    start = tabletop.home.copy()
    start[0] = tabletop.upper[0] + 0.2
    limiter.rest_at(start)
    assert limiter.outside().tolist() == [True] + [False] * 5
    positions, _, _ = drive(limiter, lambda t: start + 1.0, 100)
    assert (np.diff(np.concatenate((start[:1], positions[:, 0]))) <= 0.0).all()
    assert positions[-1, 0] <= limiter.upper[0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_target_that_is_not_finite_stops_and_is_reported(limiter, tabletop, bad):
    drive(limiter, lambda t: tabletop.home + 1.0, 12)
    assert not limiter.motion.at_rest
    positions, _, reasons = drive(limiter, lambda t: np.full(6, bad), 30)
    assert np.isfinite(positions).all()
    assert (reasons == Reason.NON_FINITE).all()
    assert limiter.motion.at_rest


def test_a_stop_holds_the_very_same_position_for_ever(limiter, tabletop):
    drive(limiter, lambda t: tabletop.home + 1.0, 12)
    for _ in range(limiter.periods):
        limiter.motion = limiter.stop(limiter.motion)
    held = limiter.motion.p.copy()
    for _ in range(10):
        limiter.motion = limiter.stop(limiter.motion)
        np.testing.assert_array_equal(limiter.motion.p, held)


def test_velocities_are_reduced_to_zero_at_a_position_limit(limiter, tabletop):
    positions, velocities, reasons = drive(limiter, lambda t: np.full(6, 2.0), 200, velocity=True)
    assert_within(limiter, tabletop.home, positions)
    assert np.abs(velocities[-1]).max() < 1e-3
    assert (reasons[-1] == Reason.POSITION_LIMIT).all()


def test_a_joint_at_its_limit_does_not_stop_the_others_in_velocity_mode(limiter, tabletop):
    want = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    def path(t):
        target = want.copy()
        target[1] = 0.2 * np.sin(2.0 * np.pi * t)
        return target

    _, velocities, _ = drive(limiter, path, 300, velocity=True)
    wanted = np.array([path((step + 1) * limiter.period_s)[1] for step in range(300)])
    assert np.abs(velocities[200:, 1] - wanted[200:]).max() < 0.05


targets = st.floats(-4.0, 4.0) | st.sampled_from([np.nan, np.inf, 1e300, -1e300, 0.0])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    wild=st.lists(st.lists(targets, min_size=6, max_size=6), min_size=1, max_size=5),
    jerk=st.sampled_from([60.0, 400.0, 1e5]),
    velocity=st.booleans(),
)
def test_no_target_whatever_leads_out_of_the_limits(tabletop, seed, wild, jerk, velocity):
    from dataclasses import replace

    joints = tuple(replace(joint, jerk=jerk) for joint in tabletop.joints)
    limiter = Limiter(replace(tabletop, joints=joints))
    rng = np.random.default_rng(seed)
    start = rng.uniform(limiter.lower, limiter.upper)
    limiter.rest_at(start)
    positions = []
    for step in range(80):
        if step % 8 == 0:
            target = np.array(wild[rng.integers(len(wild))]) + rng.normal(0.0, 0.3, 6)
        if rng.random() < 0.05:
            limiter.motion = limiter.stop(limiter.motion)
        else:
            follow = limiter.follow_velocity if velocity else limiter.follow
            three = target + rng.normal(0.0, 0.05, (3, 6))
            limiter.motion = follow(limiter.motion, three)
        positions.append(limiter.motion.p)
    assert np.isfinite(positions).all()
    assert_within(limiter, start, np.array(positions))
