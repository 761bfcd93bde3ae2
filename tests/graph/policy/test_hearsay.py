# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What an encoder does that is started again after whoever said the last sentence has gone."""

from __future__ import annotations

import numpy as np
import pytest
from std_msgs.msg import String

from omni_ros.nodes._support import to_ns

LATER = "touch the blue block"


@pytest.fixture(scope="module")
def policy(tools, policy_tools, policy_robot, bundle, ros_domain, tmp_path_factory):
    """The launch had a sentence, and somebody has said another one since, and ended."""
    graph = tools.Graph(tmp_path_factory.mktemp("hearsay"))
    try:
        policy = policy_tools.Policy(
            graph, tools, "separate", robot=policy_robot(guidance="none"), bundle=str(bundle),
            instruction=policy_tools.sentence)
        policy.senses = policy_tools.Senses(graph)
        policy.senses.start()
        policy.until("action_head", lambda s: s.text.endswith(policy_tools.sentence), "chunks")
        somebody = graph.publisher(String, "instruction", 1)
        somebody.publish(String(data=LATER))
        for stage in policy_tools.stages:
            policy.until(stage, lambda s: s.instruction == LATER, "the other sentence")
        graph.node.destroy_publisher(somebody)
        yield policy
        policy.senses.stop()
    finally:
        graph.close()


def test_it_goes_on_with_what_the_other_stages_have_heard(policy, policy_tools, expected):
    policy.processes["vision_encoder"].kill()
    known = len(policy.chunks)
    policy.start("vision_encoder")
    policy.bring_up(("vision_encoder",))
    policy.until("vision_encoder", lambda s: s.instruction == LATER and s.observations_handed_on,
                 "observations for it")
    policy.eventually(lambda: len(policy.chunks) >= known + 3, "chunks")
    for chunk in policy.chunks.messages[known + 1:]:  # one may have been under way
        np.testing.assert_array_equal(policy_tools.rows(chunk),
                                      expected(to_ns(chunk.header.stamp), LATER))
