# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The scene's looks: as built, or drawn from the seed; nothing but the looks changes."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.world.appearance import VARIED
from omni_ros.world.simulation import Simulation


@pytest.fixture(scope="module")
def plain() -> Simulation:
    return Simulation(width=96, height=96)


@pytest.fixture(scope="module")
def varied() -> Simulation:
    return Simulation(width=96, height=96, appearance=VARIED)


def drawn(simulation: Simulation, seed: int, camera: str = "front") -> np.ndarray:
    simulation.reset(seed)
    return simulation.render(camera).copy()


@pytest.mark.parametrize("camera", ["front", "wrist"])
def test_one_seed_gives_one_look_whatever_came_before(varied, camera):
    first = drawn(varied, 5, camera)
    drawn(varied, 6, camera)
    np.testing.assert_array_equal(drawn(varied, 5, camera), first)


def test_seeds_differ_in_light_and_colour(varied):
    means = [drawn(varied, seed).mean(axis=(0, 1)) for seed in range(6)]
    assert np.std(means, axis=0).min() > 2.0


def test_varied_looks_change_neither_the_episode_nor_its_physics(plain, varied):
    for simulation in (plain, varied):
        simulation.reset(3)
        simulation.command_position(np.array([0.3, 0.2, 0.1, 0.0, 0.2, 0.5]))
        simulation.step(100)
    np.testing.assert_array_equal(plain.pose(), varied.pose())


def test_plain_looks_return_after_varied_ones(varied, plain):
    drawn(varied, 7)
    varied.appearance.mode = "plain"
    try:
        np.testing.assert_array_equal(drawn(varied, 7), drawn(plain, 7))
    finally:
        varied.appearance.mode = VARIED


def test_blocks_keep_their_colours_apart(varied):
    for seed in range(8):
        varied.reset(seed)
        rgb = [varied.model.geom(name).rgba[:3] for name in varied.block_names]
        assert [int(np.argmax(c)) for c in rgb[:3]] == [0, 1, 2]
        assert rgb[3][2] < 0.3 * rgb[3][0] < rgb[3][1]


def test_an_unknown_appearance_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="'dark'.*plain, varied"):
        Simulation(appearance="dark")
