# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""docs/examples/my_vision_encoder.py in place of our vision encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from omni_ros.msg import PolicyStatus, StageHandoff, TensorHandle
from omni_ros.nodes._support import COMMAND_QOS, to_ns

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "my_vision_encoder.py"


@pytest.fixture(scope="module")
def policy(tools, policy_tools, policy_robot, bundle, ros_domain, tmp_path_factory):
    """The graph, whose own encoder has ended; the example runs instead."""
    # A loaded machine may take its time: what counts here is which chunk comes, not when.
    robot = policy_robot(guidance="none", image_timeout_s=60.0, joints_timeout_s=60.0, life_s=5.0)
    graph = tools.Graph(tmp_path_factory.mktemp("own_stage"))
    try:
        policy = policy_tools.Policy(graph, tools, "separate", robot=robot, bundle=str(bundle))
        policy.handed_over = graph.record(StageHandoff, "image_tokens", COMMAND_QOS)
        policy.senses = policy_tools.Senses(graph)
        assert policy.processes["vision_encoder"].end() == 0
        policy.start_example = lambda: graph.start(
            EXAMPLE, robot=robot, bundle=policy.parameters["bundle"])
        policy.example = policy.start_example()
        policy.say(policy_tools.sentence)
        policy.senses.start(rate_hz=5.0)
        try:
            yield policy
        finally:
            policy.senses.stop()
    finally:
        graph.close()


def handed_over(policy) -> list[StageHandoff]:
    """Return what has come from the example that is running now."""
    messages = policy.handed_over.messages
    return [m for m in messages if m.pipeline == messages[-1].pipeline]


def assert_equal(chunks, policy_tools, expected) -> None:
    for chunk in chunks:
        np.testing.assert_array_equal(policy_tools.rows(chunk), expected(to_ns(chunk.header.stamp)))


def test_the_chunks_are_those_of_the_bundle_bit_for_bit(policy, policy_tools, expected):
    assert_equal(policy.next_chunks(3), policy_tools, expected)


def test_the_tokens_of_a_neighbour_lie_in_shared_memory(policy):
    """The first may go in the message: until the neighbour has said that it is one."""
    def transports() -> set[int]:
        tensors = handed_over(policy)[-1].tensors
        assert [tensor.name for tensor in tensors] == ["image_0", "image_1"]
        return {tensor.transport for tensor in tensors}

    policy.eventually(lambda: transports() == {TensorHandle.TRANSPORT_SHARED_MEMORY}, "a ring")


def test_of_a_covered_camera_nothing_is_handed_over(policy, policy_tools):
    policy.senses.covered = {"front"}
    try:
        policy.eventually(lambda: "camera1 shows nothing" in policy.example.output, "a warning")
        known = len(policy.handed_over)
        warnings = policy.example.output.count("shows nothing")
        policy.eventually(lambda: policy.example.output.count("shows nothing") > warnings, "another one")
        assert len(policy.handed_over) == known
    finally:
        policy.senses.usual()
    policy.next_chunks(1)


def test_after_it_was_killed_the_stages_wait_and_name_what_is_missing(policy):
    policy.example.kill()
    status = policy.until("fusion_backbone", lambda s: s.state == PolicyStatus.STATE_WAITING,
                          "waiting")
    assert status.text.startswith("no image_tokens from vision_encoder for ")


def test_started_anew_it_goes_on_with_the_sentence_that_was_said(policy, policy_tools, expected):
    """With a new ring, and numbers that begin at 1 again."""
    policy.example.kill()  # if this is tried again
    policy.example = policy.start_example()
    chunk = policy.next_chunks(2)[-1]
    assert chunk.observation_seq == 2
    assert_equal([chunk], policy_tools, expected)
