# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The table-top: episodes by their rules, servos, contacts, pictures."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.world import kinematics
from omni_ros.world.cameras import CameraRig, intrinsics
from omni_ros.world.scene import (
    BLOCK_ANGLE,
    BLOCK_COLOURS,
    BLOCK_NAMES,
    BLOCK_RADIUS,
    CAMERAS,
    CUBE_SIDE,
    HOME,
    HOME_SPREAD,
    JOINT_UPPER,
)
from omni_ros.world.simulation import VELOCITY_LEAD, Simulation


@pytest.fixture(scope="module")
def shared() -> Simulation:
    return Simulation()


@pytest.fixture()
def simulation(shared) -> Simulation:
    """A simulation at the start of episode 0; one scene serves all tests."""
    shared.reset(0)
    return shared


def state(simulation: Simulation) -> np.ndarray:
    return np.concatenate([simulation.data.qpos, simulation.data.qvel, simulation.data.ctrl])


# -- episodes -----------------------------------------------------------------------------------


def test_one_seed_gives_one_episode_whatever_came_before(simulation):
    simulation.reset(7)
    simulation.step(50)
    first = state(simulation)
    simulation.reset(8)
    simulation.command_velocity(np.ones(6))
    simulation.step(300)
    simulation.reset(7)
    simulation.step(50)
    np.testing.assert_array_equal(state(simulation), first)


def test_two_simulations_of_one_seed_agree_to_the_bit(simulation):
    other = Simulation(seed=0)
    simulation.step(100)
    other.step(100)
    np.testing.assert_array_equal(state(simulation), state(other))


def test_different_seeds_give_different_episodes(simulation):
    first = simulation.block_positions()
    simulation.reset(1)
    assert np.abs(simulation.block_positions() - first).max() > 0.01


@pytest.fixture(scope="module")
def episodes(shared) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    found = []
    for seed in range(300):
        shared.reset(seed)
        found.append((shared.block_positions(), shared.joint_positions(), shared.tip()))
    return found


def test_blocks_lie_on_the_table_inside_their_ring_segment(episodes):
    blocks = np.stack([blocks for blocks, _, _ in episodes])
    radius = np.hypot(blocks[..., 0], blocks[..., 1])
    assert radius.min() >= BLOCK_RADIUS[0] and radius.max() <= BLOCK_RADIUS[1]
    assert np.abs(np.arctan2(blocks[..., 1], blocks[..., 0])).max() <= BLOCK_ANGLE
    np.testing.assert_allclose(blocks[..., 2], CUBE_SIDE / 2)


def test_blocks_are_at_least_75_mm_apart(episodes):
    for blocks, _, _ in episodes:
        gaps = np.linalg.norm(blocks[:, None] - blocks[None], axis=-1)
        assert gaps[~np.eye(4, dtype=bool)].min() >= 0.075


def test_blocks_fill_their_area_evenly(episodes):
    blocks = np.stack([blocks for blocks, _, _ in episodes])
    radius = np.hypot(blocks[..., 0], blocks[..., 1])
    half_area = np.sqrt((BLOCK_RADIUS[0] ** 2 + BLOCK_RADIUS[1] ** 2) / 2)
    # Blocks keep their distance, which draws them apart a little; 1200 draws, so 0.5 +- 0.1.
    assert abs(np.mean(radius < half_area) - 0.5) < 0.1


def test_the_arm_starts_around_home_clear_of_the_blocks(episodes):
    joints = np.stack([joints for _, joints, _ in episodes])
    np.testing.assert_allclose(joints.mean(axis=0), HOME, atol=0.25 * HOME_SPREAD.max())
    np.testing.assert_allclose(joints.std(axis=0), HOME_SPREAD, rtol=0.3)
    assert min(tip[2] for _, _, tip in episodes) >= 0.05


def test_nothing_moves_until_commanded(simulation):
    before = simulation.joint_positions(), simulation.block_positions()
    simulation.step(400)
    np.testing.assert_allclose(simulation.joint_positions(), before[0], atol=1e-6)
    np.testing.assert_allclose(simulation.block_positions(), before[1], atol=1e-4)


# -- servos -------------------------------------------------------------------------------------


def test_servos_reach_a_commanded_pose_without_sagging(simulation):
    target = np.array([0.4, 0.1, 0.3, 0.2, -0.5, 0.8])
    simulation.command_position(target)
    simulation.step(1200)
    np.testing.assert_allclose(simulation.joint_positions(), target, atol=1e-3)


def test_commands_beyond_the_joint_ranges_are_clipped(simulation):
    simulation.command_position(np.full(6, 9.0))
    np.testing.assert_array_equal(simulation.target, JOINT_UPPER)


def test_a_velocity_command_moves_at_that_velocity_until_told_otherwise(simulation):
    velocity = np.array([0.2, 0.0, 0.0, 0.0, -0.3, 0.0])
    simulation.command_velocity(velocity)
    simulation.step(400)
    start = simulation.joint_positions()
    simulation.step(400)
    np.testing.assert_allclose(simulation.joint_positions() - start, velocity, atol=0.01)


def test_zero_velocity_brings_the_arm_to_rest(simulation):
    simulation.command_velocity(np.array([0.5, 0, 0, 0, 0, 0]))
    simulation.step(200)
    simulation.command_velocity(np.zeros(6))
    simulation.step(400)
    np.testing.assert_allclose(simulation.joint_velocities(), 0.0, atol=1e-4)


def test_a_blocked_joint_does_not_wind_up_under_velocity_command(simulation):
    simulation.command_velocity(np.array([0, 0.5, 0, 0, 0, 0]))  # down into the table
    simulation.step(2400)
    assert "table" in simulation.touched()
    lead = simulation.target - simulation.joint_positions()
    assert np.abs(lead).max() <= VELOCITY_LEAD + 0.01


# -- contacts -----------------------------------------------------------------------------------


def test_nothing_is_touched_at_the_start(simulation):
    assert simulation.touched() == []


def test_a_pushed_block_is_reported_as_touched(simulation):
    block = simulation.block_positions()[2]
    for height in (0.06, 0.012):
        simulation.command_position(kinematics.inverse(block + [0, 0.045, height], gripper=0.0))
        simulation.step(800)
        assert simulation.touched() == []
    simulation.command_position(kinematics.inverse(block + [0, 0.015, 0.012], gripper=0.0))
    simulation.step(60)
    assert simulation.touched() == [BLOCK_NAMES[2]]


# -- pictures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_front_camera_shows_each_block_in_its_colour_where_it_projects(simulation, seed):
    simulation.reset(seed)
    # Out of the way, so that nothing hides a block.
    simulation.data.qpos[simulation._qpos] = [0, -1.7, 1.2, 0.5, 0, 0]
    simulation.step()
    image = simulation.render("front")
    tops = simulation.block_positions() + [0, 0, CUBE_SIDE / 2]
    pixels = np.rint(simulation.project("front", tops)).astype(int)
    for (x, y), colour in zip(pixels, BLOCK_COLOURS.values()):
        shown = image[y, x] / np.linalg.norm(image[y, x].astype(float))
        wanted = np.array(colour) / np.linalg.norm(colour)
        assert shown @ wanted > 0.98, f"{image[y, x]} at {x, y}, expected {colour}"


def test_the_wrist_camera_sees_the_block_below_the_tip(simulation):
    block = simulation.block_positions()[0]
    joints = kinematics.inverse(block + [0, 0, 0.06], gripper=0.9)
    simulation.command_position(joints)
    simulation.step(1000)
    x, y = np.rint(simulation.project("wrist", block + [0, 0, CUBE_SIDE / 2])).astype(int)
    red, green, blue = simulation.render("wrist")[y, x].astype(int)
    assert red > 100 and red > 3 * green and red > 3 * blue


@pytest.mark.parametrize("camera", list(CAMERAS))
def test_a_picture_is_the_same_each_time_it_is_drawn(simulation, camera):
    first = simulation.render(camera).copy()
    np.testing.assert_array_equal(simulation.render(camera), first)


@pytest.mark.parametrize("camera", list(CAMERAS))
def test_a_bare_pose_draws_the_same_picture_as_the_simulation(simulation, camera):
    simulation.step(10)
    rig = CameraRig(simulation.model, 128, 128)
    simulation.data.qvel[:] = 0
    simulation.reset(3)
    drawn = rig.draw_pose(simulation.pose(), camera).copy()
    rig.close()
    np.testing.assert_array_equal(simulation.render(camera), drawn)


def test_images_are_drawn_into_a_given_buffer(simulation):
    out = np.zeros((128, 128, 3), dtype=np.uint8)
    assert simulation.render("front", out) is out
    assert out.std() > 10


def test_an_image_larger_than_the_buffer_is_refused_with_both_sizes(simulation):
    with pytest.raises(ValueError, match="200x128 does not fit.*128x128"):
        CameraRig(simulation.model, 200, 128)


def test_intrinsics_follow_the_field_of_view():
    view = intrinsics("front", 640, 480)
    assert view.focal == pytest.approx(240 / np.tan(np.radians(22.5)))
    assert view.matrix() == [view.focal, 0, 319.5, 0, view.focal, 239.5, 0, 0, 1]


# -- the place pad ------------------------------------------------------------------------------


def test_the_pad_lies_apart_from_the_blocks(simulation):
    for seed in range(60):
        simulation.reset(seed)
        gaps = np.linalg.norm(simulation.block_positions()[:, :2] - simulation.pad_position(), axis=1)
        assert gaps.min() > 0.045


def test_the_pad_stays_where_it_is_and_carries_blocks_as_the_table_does(simulation):
    before = simulation.pad_position()
    simulation.place_block("block_red", (*before, CUBE_SIDE / 2))
    simulation.command_velocity(np.array([0.3, 0.2, 0, 0, 0, 0]))
    simulation.step(400)
    np.testing.assert_array_equal(simulation.pad_position(), before)
    assert simulation.block_positions()[0, 2] == pytest.approx(CUBE_SIDE / 2, abs=1e-3)


def test_the_pad_is_part_of_a_pose(simulation):
    rig = CameraRig(simulation.model, 128, 128)
    first = rig.draw_pose(simulation.pose(), "front").copy()
    simulation.place_pad((0.2, -0.25))
    assert (rig.draw_pose(simulation.pose(), "front") != first).any()
    rig.close()
