# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""docs/examples/my_vision_encoder.py in place of our vision encoder."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from omni_ros.msg import PolicyStatus, StageHandoff, TensorHandle
from omni_ros.nodes._support import COMMAND_QOS

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "my_vision_encoder.py"
MOMENTS = 3


@pytest.fixture(scope="module")
def policy(tools, policy_tools, policy_robot, bundle, ros_domain, tmp_path_factory):
    """The graph, whose own encoder has ended; the example runs instead."""
    # The moments lie in the past, so that each is due at once.
    robot = policy_robot(guidance="none", image_timeout_s=60.0, joints_timeout_s=60.0, life_s=600.0)
    graph = tools.Graph(tmp_path_factory.mktemp("own_stage"))
    try:
        policy = policy_tools.Policy(graph, tools, "separate", robot=robot, bundle=str(bundle))
        assert policy.processes["vision_encoder"].end() == 0
        policy.eventually(lambda: not graph.node.count_subscribers("front/image_raw"),
                          "the end of our encoder")
        policy.handed_over = graph.record(StageHandoff, "image_tokens", COMMAND_QOS)
        policy.example = graph.start(EXAMPLE, robot=robot, bundle=str(bundle))
        policy.senses = policy_tools.Senses(graph)
        policy.say(policy_tools.sentence)
        # Until it has heard the backbone, whose memory it shares, the example sends bytes.
        policy.eventually(lambda: graph.node.count_subscribers("policy_status") > 3, "its ears")
        policy.stamps = [time.time_ns() - 30_000_000_000 + step * 1_000_000_000
                         for step in range(MOMENTS)]
        policy.answers = {stamp: policy.answer(policy.senses, stamp) for stamp in policy.stamps}
        yield policy
    finally:
        graph.close()


def test_the_chunks_are_those_of_the_bundle_bit_for_bit(policy, expected):
    for stamp_ns, got in policy.answers.items():
        np.testing.assert_array_equal(got, expected(stamp_ns))


def test_the_tokens_of_a_neighbour_lie_in_shared_memory(policy):
    last = policy.handed_over.last
    assert {tensor.transport for tensor in last.tensors} == {TensorHandle.TRANSPORT_SHARED_MEMORY}
    assert [tensor.name for tensor in last.tensors] == ["image_0", "image_1"]


def test_of_a_covered_camera_nothing_is_handed_over(policy):
    policy.senses.covered = {"front"}
    try:
        policy.senses.show(time.time_ns() - 1_000_000_000)
        policy.eventually(lambda: "camera1 covered?" in policy.example.output, "a warning")
    finally:
        policy.senses.usual()
    assert len(policy.handed_over) == MOMENTS


def test_after_it_was_killed_the_stages_wait_and_name_what_is_missing(policy):
    policy.example.kill()
    status = policy.until("fusion_backbone", lambda s: s.state == PolicyStatus.STATE_WAITING,
                          "waiting")
    assert status.text.startswith("no image_tokens from vision_encoder for ")


def test_started_anew_it_goes_on_with_the_sentence_that_was_said(policy, expected):
    """With a new ring and a new pipeline."""
    policy.example = policy.graph.start(EXAMPLE, robot=policy.parameters["robot"],
                                        bundle=policy.parameters["bundle"])
    senses = type(policy.senses)(policy.graph)
    stamp_ns = time.time_ns()
    np.testing.assert_array_equal(policy.answer(senses, stamp_ns), expected(stamp_ns))
