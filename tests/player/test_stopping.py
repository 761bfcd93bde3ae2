# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The quickest stop: always there, exact, and within its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_ros.player.stopping import Stopping

fraction = st.floats(-1.0, 1.0) | st.sampled_from([-1.0, 0.0, 1.0])


def plan(velocity, acceleration, jerk, period, v, a):
    limits = (np.array([velocity]), np.array([acceleration]), np.array([jerk]))
    stop = Stopping(*limits, period)
    return stop.plan(np.array([[v]]), np.array([[a]]))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    velocity=st.floats(0.05, 10.0),
    rise=st.floats(0.001, 0.5),
    brake=st.floats(0.01, 1.0),
    period=st.sampled_from([0.005, 0.01, 0.02, 1 / 30]),
    v=fraction,
    a=fraction,
)
def test_every_stop_ends_at_rest_within_acceleration_and_jerk(
    velocity, rise, brake, period, v, a
):
    acceleration = velocity / brake
    jerk = acceleration / rise
    v, a = v * velocity, a * acceleration
    accelerations, velocities, fits = plan(velocity, acceleration, jerk, period, v, a)
    assert fits.all()
    seen = np.concatenate(([a], accelerations[0, 0]))
    speeds = np.concatenate(([v], velocities[0, 0]))
    assert np.abs(seen).max() <= acceleration * (1 + 1e-9)
    assert np.abs(np.diff(seen)).max() <= jerk * period * (1 + 1e-9)
    np.testing.assert_allclose(np.diff(speeds) / period, seen[1:], atol=1e-9 * acceleration)
    assert speeds[-1] == 0.0 and seen[-1] == 0.0


def test_a_state_at_rest_needs_no_stop():
    accelerations, velocities, fits = plan(3.0, 20.0, 400.0, 0.02, 0.0, 0.0)
    assert fits.all() and not accelerations.any() and not velocities.any()


def test_no_stop_of_fewer_periods_exists():
    """The sum of the hardest possible braking over one period less does not reach zero."""
    velocity, acceleration, jerk, period = 3.0, 20.0, 400.0, 0.02
    _, velocities, _ = plan(velocity, acceleration, jerk, period, 2.5, 4.0)
    periods = int(np.flatnonzero(velocities[0, 0])[-1]) + 1  # then comes rest
    index = np.arange(1, periods + 1)
    hardest = np.maximum(
        np.maximum(-acceleration, 4.0 - jerk * period * index), -(periods - index) * jerk * period
    )
    assert 2.5 + hardest.sum() * period > 0.0


def test_limits_that_make_a_stop_endless_are_refused():
    with pytest.raises(ValueError, match="raise the acceleration or jerk limits"):
        Stopping(np.array([3.0]), np.array([0.001]), np.array([400.0]), 0.02)
