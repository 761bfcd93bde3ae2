# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Episodes are judged by their rules, from plain numbers."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.world.judge import TIME_LIMIT_S, Judge, Verdict
from omni_ros.world.tasks import Task

BLOCKS = {"block_red": (0.2, 0.1, 0.015), "block_green": (0.2, 0.0, 0.015),
          "block_blue": (0.2, -0.1, 0.015), "block_yellow": (0.28, 0.0, 0.015)}
PAD = (0.25, 0.1)
FAR = (0.1, 0.0, 0.2)


def judge(skill: str, blocks=BLOCKS, **options) -> Judge:
    return Judge(Task(skill, "red"), blocks, pad=PAD, **options)


def feed(judge: Judge, seconds: float, *, start: float = 0.0, moved=(), tip=FAR, **numbers):
    """Show the same numbers for a while, 15 times a second; return the last verdict."""
    blocks = {**BLOCKS, **dict(moved)}
    verdict = judge.verdict
    for time_s in start + np.arange(round(seconds * 15) + 1) / 15:
        verdict = judge.update(float(time_s), tip=tip, blocks=blocks, **numbers)
    return verdict


def above(name: str, gap: float) -> tuple[float, float, float]:
    x, y, _ = BLOCKS[name]
    return x, y, 0.030 + gap


# -- touch --------------------------------------------------------------------------------------


def test_staying_at_the_named_block_for_half_a_second_is_a_touch():
    assert feed(judge("touch"), 0.4, tip=above("block_red", 0.019)) is Verdict.RUNNING
    assert feed(judge("touch"), 0.6, tip=above("block_red", 0.019)) is Verdict.SUCCESS


def test_21_mm_away_is_no_touch():
    assert feed(judge("touch"), 3.0, tip=above("block_red", 0.021)) is Verdict.RUNNING


def test_passing_over_the_block_twice_is_no_touch():
    one = judge("touch")
    feed(one, 0.3, tip=above("block_red", 0.0))
    feed(one, 0.2, start=0.4, tip=FAR)
    assert feed(one, 0.3, start=0.7, tip=above("block_red", 0.0)) is Verdict.RUNNING


def test_touching_another_block_first_is_wrong():
    one = judge("touch")
    assert feed(one, 0.1, touched=["block_blue"]) is Verdict.WRONG
    assert "block_blue" in one.reason


def test_touching_the_table_or_the_named_block_is_not_wrong():
    assert feed(judge("touch"), 0.1, touched=["table", "block_red"]) is Verdict.RUNNING


def test_staying_at_another_block_is_wrong():
    assert feed(judge("touch"), 0.6, tip=above("block_green", 0.010)) is Verdict.WRONG


def test_a_verdict_stays():
    one = judge("touch")
    feed(one, 0.6, tip=above("block_red", 0.0))
    assert feed(one, 0.6, start=1.0, touched=["block_blue"]) is Verdict.SUCCESS


@pytest.mark.parametrize("skill", TIME_LIMIT_S)
def test_the_time_of_a_skill_runs_out(skill):
    limit = TIME_LIMIT_S[skill]
    one = judge(skill, start_s=100.0)
    assert feed(one, limit - 0.2, start=100.0) is Verdict.RUNNING
    assert feed(one, 0.4, start=100.0 + limit - 0.1) is Verdict.TIMEOUT
    assert one.seconds >= limit


# -- pick_up ------------------------------------------------------------------------------------


def test_a_block_held_50_mm_up_for_a_second_is_picked_up():
    up = [("block_red", (0.2, 0.1, 0.066))]
    assert feed(judge("pick_up"), 0.9, moved=up) is Verdict.RUNNING
    assert feed(judge("pick_up"), 1.1, moved=up) is Verdict.SUCCESS


def test_49_mm_is_not_picked_up():
    assert feed(judge("pick_up"), 2.0, moved=[("block_red", (0.2, 0.1, 0.064))]) is Verdict.RUNNING


def test_lifting_another_block_is_wrong():
    assert feed(judge("pick_up"), 0.1, moved=[("block_blue", (0.2, -0.1, 0.05))]) is Verdict.WRONG


def test_pushing_another_block_aside_is_not_wrong_when_picking_up():
    assert feed(
        judge("pick_up"), 0.5, moved=[("block_blue", (0.21, -0.1, 0.015))], touched=["block_blue"]
    ) is Verdict.RUNNING


# -- place --------------------------------------------------------------------------------------

ON_PAD = [("block_red", (0.26, 0.11, 0.015))]


def test_a_block_let_go_on_the_pad_is_placed():
    assert feed(judge("place"), 0.6, moved=ON_PAD, gripper=0.5) is Verdict.SUCCESS


def test_a_block_still_in_the_gripper_is_not_placed():
    assert feed(judge("place"), 2.0, moved=ON_PAD, gripper=0.22) is Verdict.RUNNING
    assert feed(judge("place"), 2.0, moved=ON_PAD, gripper=0.5,
                touched=["block_red"]) is Verdict.RUNNING


def test_a_block_held_over_the_pad_is_not_placed():
    assert feed(judge("place"), 2.0, moved=[("block_red", (0.25, 0.1, 0.05))],
                gripper=0.5) is Verdict.RUNNING


def test_a_block_beside_the_pad_is_not_placed():
    assert feed(judge("place"), 2.0, moved=[("block_red", (0.25, 0.126, 0.015))],
                gripper=0.5) is Verdict.RUNNING


def test_another_block_put_on_the_pad_is_wrong():
    assert feed(judge("place"), 0.6, moved=[("block_blue", (0.25, 0.1, 0.015))],
                gripper=0.5) is Verdict.WRONG


def test_a_block_that_lay_on_the_pad_from_the_start_is_not_wrong():
    there = {**BLOCKS, "block_blue": (0.25, 0.1, 0.015)}
    assert feed(judge("place", there), 1.0, moved=there.items(), gripper=0.5) is Verdict.RUNNING


def test_place_without_a_pad_is_refused():
    with pytest.raises(ValueError, match="pad"):
        Judge(Task("place", "red"), BLOCKS)


def test_an_episode_without_the_named_block_is_refused():
    with pytest.raises(ValueError, match="block_red is not among"):
        Judge(Task("touch", "red"), {"block_blue": (0, 0, 0)})
