# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whichever way the stages are joined, a chunk is the one that the bundle gives in one process."""

from __future__ import annotations

import time

import numpy as np
import pytest

#: The moments lie in the past, so that each is due at once; a second apart.
MOMENTS = 4


@pytest.fixture(scope="module")
def robot(policy_robot):
    return policy_robot(guidance="none", image_timeout_s=60.0, joints_timeout_s=60.0, life_s=600.0)


@pytest.fixture(scope="module", params=[
    ("single", "auto"), ("separate", "auto"), ("separate", "inline")], ids="-".join)
def policy(request, tools, policy_tools, robot, bundle, ros_domain, tmp_path_factory):
    composition, transport = request.param
    graph = tools.Graph(tmp_path_factory.mktemp("parity"))
    try:
        policy = policy_tools.Policy(graph, tools, composition, robot=robot, bundle=str(bundle),
                                     transport=transport, instruction=policy_tools.sentence)
        policy.senses = policy_tools.Senses(graph)
        policy.transport = transport
        yield policy
    finally:
        graph.close()


@pytest.fixture(scope="module")
def answers(policy):
    start_ns = time.time_ns() - 30_000_000_000
    stamps = [start_ns + step * 1_000_000_000 for step in range(MOMENTS)]
    return {stamp: policy.answer(policy.senses, stamp) for stamp in stamps}


def test_the_chunks_equal_those_of_the_bundle_in_one_process_bit_for_bit(answers, expected):
    for stamp, got in answers.items():
        np.testing.assert_array_equal(got, expected(stamp))


def test_the_stages_say_how_they_hand_over(answers, policy):
    wanted = "inline" if policy.transport == "inline" else (
        "by reference" if policy.composition == "single" else "shared memory")
    for stage in ("vision_encoder", "fusion_backbone"):
        assert policy.status(stage).transport == wanted


def test_chunks_name_joints_units_source_and_observation(answers, policy):
    chunk = policy.chunks.last
    assert set(chunk.joint_names) == {"shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex",
                                      "wrist_roll", "gripper"}
    assert set(chunk.joint_units) == {"rad"}
    assert chunk.source == "local"
    assert chunk.observation_seq == MOMENTS
    assert (chunk.dt.sec, round(chunk.dt.nanosec / 1e6)) == (0, 67)
