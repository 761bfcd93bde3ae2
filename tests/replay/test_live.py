# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A graph's chunk beside the recorded one: the verdict, and what it is put down to."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros.replay.live import Expectation, judge, unanswered
from omni_ros.replay.plans import Plan, Wanted
from omni_ros.replay.verdict import Kind

NAMES = ("a", "b")
ROWS = np.arange(8.0).reshape(4, 2)
EXACT = Expectation(None, {"a": 1.0, "b": 1.0})
STAMP = SimpleNamespace(sec=1, nanosec=0)


def plan(**changed) -> Plan:
    chunk = SimpleNamespace(chunk_id=7, stamp_ns=10**9, values=ROWS, joint_names=NAMES, dt_ns=1,
                            timings={}, noise_seed=0)
    facts = {"instruction": "go", "positions": {"a": 0.5, "b": 0.25},
             "wanted": (Wanted("eye", "/eye", 10**9),)}
    return Plan(chunk, **{**facts, **changed})


def chunk(values=ROWS, names=NAMES):
    return SimpleNamespace(values=np.asarray(values).ravel(), rows=len(values), joint_names=names,
                           timings=[])


def records(**changed) -> dict:
    vision = SimpleNamespace(instruction="go", joint_names=list(NAMES), positions=[0.5, 0.25],
                             cameras=["eye"], picture_stamps=[STAMP])
    head = SimpleNamespace(guided=False, delay_rows=0, leftover=[])
    for name, value in changed.items():
        setattr(vision if hasattr(vision, name) else head, name, value)
    return {"vision_encoder": vision, "action_head": head}


def test_equal_bits_are_the_same():
    assert judge(plan(), chunk(), records(), EXACT).kind is Kind.SAME


def test_joints_in_another_order_are_still_the_same():
    assert judge(plan(), chunk(ROWS[:, ::-1], NAMES[::-1]), records(), EXACT).kind is Kind.SAME


def test_a_bit_more_is_different_where_not_a_bit_is_allowed():
    verdict = judge(plan(), chunk(ROWS + 1e-9), {}, EXACT)
    assert verdict.kind is Kind.DIFFERENT and verdict.worst > 0.0


def test_a_rounding_is_within_the_tolerance_of_another_machine():
    verdict = judge(plan(), chunk(ROWS + 1e-9), {}, Expectation(1e-4, EXACT.spread))
    assert verdict.kind is Kind.WITHIN


def test_other_joints_are_different_and_named():
    verdict = judge(plan(), chunk(names=("a", "c")), {}, EXACT)
    assert verdict.kind is Kind.DIFFERENT and verdict.stage == "joint order"


@pytest.mark.parametrize("changed, words", [
    ({"instruction": "stop"}, "sentence"), ({"positions": [0.5, 0.3]}, "joint state"),
    ({"picture_stamps": [SimpleNamespace(sec=2, nanosec=0)]}, "picture of eye"),
    ({"guided": True, "delay_rows": 3}, "held 0 rows"), ({"guided": True, "leftover": [1.0]}, "went on"),
])
def test_a_chunk_of_another_observation_says_nothing_of_the_policy(changed, words):
    verdict = judge(plan(), chunk(ROWS + 1.0), records(**changed), EXACT)
    assert verdict.kind is Kind.INCOMPLETE and words in verdict.text


def test_no_chunk_at_all_is_incomplete():
    assert unanswered(plan(), "nothing came").kind is Kind.INCOMPLETE
