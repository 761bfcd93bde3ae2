# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Each stage is killed while observations go through, and started again.

Every chunk that ever comes is computed again from what was shown at its stamp: one from a tensor of
another observation, or of another process, would differ.
"""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from omni_ros.nodes._support import to_ns


@pytest.fixture(scope="module")
def policy(tools, policy_tools, policy_robot, bundle, ros_domain, tmp_path_factory):
    graph = tools.Graph(tmp_path_factory.mktemp("policy_deaths"))
    try:
        robot = policy_robot(guidance="none", execution_horizon=3)
        policy = policy_tools.Policy(graph, tools, "separate", robot=robot, bundle=str(bundle),
                                     instruction=policy_tools.sentence)
        policy.senses = policy_tools.Senses(graph)
        policy.senses.start()
        policy.next_chunks(3)
        yield policy
        policy.senses.stop()
    finally:
        graph.close()


@pytest.fixture(scope="module", params=["vision_encoder", "fusion_backbone", "action_head"])
def killed(request, policy):
    """A stage after its death, a second one of its name, and chunks again."""
    name, old = request.param, policy.processes[request.param]
    policy.next_chunks(1)
    old.kill()
    time.sleep(0.5)
    policy.start(name)
    policy.bring_up((name,))
    policy.born = time.time_ns()
    policy.next_chunks(3)
    return name, old.popen.pid


def test_chunks_come_again_of_new_observations(killed, policy):
    assert to_ns(policy.chunks.last.header.stamp) > policy.born


def test_no_chunk_was_computed_from_a_stale_tensor(killed, policy, expected, policy_tools):
    for chunk in policy.chunks.messages:
        stamp_ns = to_ns(chunk.header.stamp)
        np.testing.assert_array_equal(policy_tools.rows(chunk), expected(stamp_ns))


def test_the_shared_memory_of_the_dead_is_gone(killed):
    _, pid = killed
    left = [name for name in os.listdir("/dev/shm") if name.startswith(f"omni_ros.{pid}.")]
    assert not left


def test_the_others_let_go_of_it(killed, policy):
    _, pid = killed
    for process in policy.processes.values():
        with open(f"/proc/{process.popen.pid}/maps") as maps:
            assert f"omni_ros.{pid}." not in maps.read()
