# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What chunks ask for at an instant, and how one takes over from another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from omni_ros.player import Chunk, ControlMode
from omni_ros.player.schedule import LeadIn, Plan, Schedule, ensemble_weights
from omni_ros.robot import PlayerConfig

DATA = Path(__file__).parents[1] / "data"
STAMP = 1_700_000_000 * 10**9
DT = 33_333_333


def chunk(values, stamp_ns=STAMP, life_ns=10**10, dt_ns=DT):
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    return Chunk(stamp_ns, dt_ns, life_ns, ControlMode.POSITION, values, chunk_id=1)


def at(thing, *times_ns):
    return thing.sample(np.array(times_ns, dtype=np.int64))[:, 0]


def test_row_k_is_due_k_plus_1_steps_after_the_stamp():
    plan = Plan(chunk([1.0, 4.0, 2.0]), start_ns=STAMP)
    np.testing.assert_allclose(
        at(plan, STAMP + DT, STAMP + 2 * DT, STAMP + 3 * DT), [1.0, 4.0, 2.0], atol=1e-7
    )


def test_between_rows_the_velocity_is_continuous():
    plan = Plan(chunk(np.random.default_rng(0).normal(size=10)), start_ns=STAMP)
    times = STAMP + DT + np.arange(0, 8 * DT, 10**5, dtype=np.int64)
    values = plan.sample(times)[:, 0]
    assert np.abs(np.diff(values, 2)).max() < 0.001


def test_a_straight_line_of_rows_stays_straight_between_them():
    plan = Plan(chunk(np.arange(5.0)), start_ns=STAMP)
    np.testing.assert_allclose(at(plan, STAMP + DT + DT // 2), [0.5], atol=1e-6)


def test_after_the_last_row_the_target_stays_there():
    plan = Plan(chunk([1.0, 2.0]), start_ns=STAMP)
    np.testing.assert_allclose(at(plan, STAMP + 2 * DT, STAMP + 90 * DT), [2.0, 2.0])


def test_before_row_0_the_target_comes_from_where_the_arm_is():
    lead = LeadIn(STAMP, np.array([5.0]), np.array([0.0]))
    plan = Plan(chunk([1.0, 1.0]), start_ns=STAMP, lead_in=lead)
    np.testing.assert_allclose(at(plan, STAMP - DT, STAMP, STAMP + DT), [5.0, 5.0, 1.0], atol=1e-6)
    assert 1.0 < at(plan, STAMP + DT // 2)[0] < 5.0


def test_without_a_lead_in_the_first_rows_are_continued_backwards():
    plan = Plan(chunk([1.0, 2.0, 3.0]), start_ns=STAMP)
    np.testing.assert_allclose(at(plan, STAMP), [0.0], atol=1e-6)


def test_a_shift_moves_rows_and_life_alike():
    moved = Plan(chunk([1.0, 2.0], life_ns=10 * DT), start_ns=STAMP, shift_ns=7 * DT)
    np.testing.assert_allclose(at(moved, STAMP + 8 * DT), [1.0])
    assert moved.end_ns == STAMP + 9 * DT and not moved.cut_by_life


def test_rows_beyond_the_life_are_not_played():
    plan = Plan(chunk(np.arange(10.0), life_ns=3 * DT), start_ns=STAMP)
    assert plan.end_ns == STAMP + 3 * DT and plan.cut_by_life
    np.testing.assert_allclose(at(plan, STAMP + 9 * DT), [2.0], atol=1e-6)


def test_a_chunk_of_one_row_is_a_constant_target():
    plan = Plan(chunk([3.0]), start_ns=STAMP)
    np.testing.assert_allclose(at(plan, STAMP, STAMP + DT, STAMP + 5 * DT), [3.0, 3.0, 3.0])


def test_rows_due_already_are_counted():
    schedule = Schedule(PlayerConfig())
    plan = Plan(chunk(np.arange(30.0)), start_ns=STAMP)
    assert schedule.add(plan, STAMP + DT - 1) == 0
    assert schedule.add(plan, STAMP + DT) == 1
    assert schedule.add(plan, STAMP + 21 * DT) == 21
    assert schedule.add(plan, STAMP + 999 * DT) == 30


def two(switching, **more):
    schedule = Schedule(PlayerConfig(switching=switching, **more))
    for start, value in ((STAMP, 0.0), (STAMP + 10 * DT, 1.0)):
        plan = Plan(chunk([value] * 60), start_ns=start)
        schedule.add(plan, start)
    return schedule


def test_latest_plays_the_new_chunk_at_once():
    np.testing.assert_allclose(at(two("latest"), STAMP + 10 * DT), [1.0])


def test_blend_fades_from_the_old_chunk_to_the_new_one_in_a_straight_line():
    schedule = two("blend", blend_s=0.2)
    start = STAMP + 10 * DT
    np.testing.assert_allclose(
        at(schedule, start, start + 5 * 10**7, start + 10**8, start + 2 * 10**8, start + 10**9),
        [0.0, 0.25, 0.5, 1.0, 1.0],
    )


def test_a_third_chunk_during_a_blend_makes_no_jump():
    schedule = two("blend", blend_s=0.2)
    third = STAMP + 10 * DT + 10**8
    before = at(schedule, third)
    schedule.add(Plan(chunk([9.0] * 60), start_ns=third), third)
    np.testing.assert_allclose(at(schedule, third), before)


def test_chunks_that_were_faded_out_are_let_go():
    schedule = two("blend", blend_s=0.2)
    schedule.prune(STAMP + 10 * DT + 10**8)
    assert len(schedule) == 2
    schedule.prune(STAMP + 10 * DT + 2 * 10**8)
    assert len(schedule) == 1


@pytest.mark.parametrize("switching", ["blend", "ensemble"])
def test_the_number_of_chunks_kept_is_bounded(switching):
    schedule = Schedule(PlayerConfig(switching=switching, blend_s=10.0, max_chunks=4))
    for index in range(50):
        schedule.add(Plan(chunk([1.0] * 60), start_ns=STAMP + index), STAMP)
    assert len(schedule) == 4
    np.testing.assert_allclose(at(schedule, STAMP + DT), [1.0])


def test_ensemble_weights_favour_the_oldest_for_a_positive_coefficient():
    weights = ensemble_weights(3, 0.5)
    np.testing.assert_allclose(weights, np.exp([0.0, -0.5, -1.0]) / np.exp([0, -0.5, -1.0]).sum())


@pytest.mark.parametrize("coeff", ["0.01", "0.0", "-0.1", "0.5"])
def test_ensembling_gives_what_lerobot_gives(coeff):
    data = np.load(DATA / "lerobot_ensemble.npz")
    schedule = Schedule(
        PlayerConfig(switching="ensemble", ensemble_coeff=float(coeff), max_chunks=8)
    )
    for step, values in enumerate(data["chunks"][:, 0]):
        now = STAMP + step * DT
        schedule.add(Plan(chunk(values, stamp_ns=now), start_ns=now), now)
        played = schedule.sample(np.array([now + DT], dtype=np.int64))[0]
        np.testing.assert_allclose(played, data[f"out_{coeff}"][step], atol=1e-6)


def test_in_an_ensemble_chunks_of_another_source_are_not_averaged_with_but_let_go_of():
    schedule = Schedule(PlayerConfig(switching="ensemble", ensemble_coeff=0.0, max_chunks=8))
    for stamp, value in ((STAMP, -1.0), (STAMP + DT, -1.0)):
        schedule.add(Plan(chunk([value] * 20, stamp_ns=stamp), start_ns=stamp), stamp)
    for count, stamp in ((1, STAMP + 2 * DT), (2, STAMP + 3 * DT)):
        remote = replace(chunk([1.0] * 20, stamp_ns=stamp), source="openpi:gpu:8000")
        schedule.add(Plan(remote, start_ns=stamp), stamp)
        assert at(schedule, stamp + 2 * DT) == [1.0] and len(schedule) == count


def test_in_an_ensemble_a_chunk_that_ended_no_longer_counts():
    schedule = Schedule(PlayerConfig(switching="ensemble"))
    schedule.add(Plan(chunk([0.0] * 3), start_ns=STAMP), STAMP)
    schedule.add(Plan(chunk([1.0] * 9), start_ns=STAMP), STAMP)
    np.testing.assert_allclose(at(schedule, STAMP + 5 * DT), [1.0])
    assert schedule.end_ns == STAMP + 9 * DT
