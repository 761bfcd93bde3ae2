# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the stages tell a recorder of an observation is what they worked on."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from omni_ros.msg import StageRecord  # noqa: E402
from omni_ros.nodes._stage_record import RECORDS_QOS  # noqa: E402
from omni_ros.nodes._support import to_ns  # noqa: E402
from omni_ros.policy.noise import noise  # noqa: E402
from omni_ros.replay.fingerprints import fingerprint, read_fingerprint  # noqa: E402

#: Apart by less than a chunk reaches, so that the second continues the first.
STEP_NS = 600_000_000


@pytest.fixture(scope="module")
def recorded(policy_robot, policy_tools, tools, bundle, ros_domain, tmp_path_factory):
    """Two moments shown to a policy with real-time chunking: (stamp, chunk, record by stage)."""
    graph = tools.Graph(tmp_path_factory.mktemp("records"))
    try:
        records = graph.record(StageRecord, "policy_record", RECORDS_QOS)
        robot = policy_robot(player={"switching": "latest"}, guidance="rtc", image_timeout_s=60.0,
                             joints_timeout_s=60.0, life_s=600.0)
        policy = policy_tools.Policy(graph, tools, "single", robot=robot, bundle=str(bundle),
                                     instruction=policy_tools.sentence)
        senses = policy_tools.Senses(graph)
        tools.eventually(lambda: graph.node.count_publishers("policy_record") == 3, "recorders")
        start_ns = time.time_ns() - 30_000_000_000
        found = []
        for stamp_ns in (start_ns, start_ns + STEP_NS):
            policy.answer(senses, stamp_ns)
            mine = tools.eventually(lambda s=stamp_ns: (got := {
                m.stage: m for m in records.messages if to_ns(m.header.stamp) == s}
            ) and len(got) == 3 and got, f"three records\n{graph.logs()}")
            found.append((stamp_ns, policy.chunks.last, mine))
        yield found
    finally:
        graph.close()


def prints(record) -> dict:
    return {one.name: read_fingerprint(one) for one in record.fingerprints}


def test_pictures_and_positions_are_those_that_were_shown(recorded, policy_tools):
    for stamp_ns, _, stages in recorded:
        record = stages["vision_encoder"]
        assert np.array_equal(record.positions, policy_tools.pose(stamp_ns))
        assert [to_ns(one) for one in record.picture_stamps] == [stamp_ns] * 2
        for robot_camera, camera in policy_tools.cameras.items():
            shown = policy_tools.picture(robot_camera, stamp_ns)
            name = f"picture/{camera}"
            assert prints(record)[name].same(fingerprint(name, shown))
            assert {f"pixels/{camera}", f"image_tokens/{camera}"} <= set(prints(record))


def test_the_records_name_the_chunk_they_are_of(recorded):
    for _, chunk, stages in recorded:
        assert {record.observation_seq for record in stages.values()} == {chunk.observation_seq}
        assert stages["action_head"].chunk_id == chunk.chunk_id
        assert {record.instruction for record in stages.values()} == {"touch the red block"}


def test_the_prefix_and_the_prompt_are_told(recorded):
    for _, _, stages in recorded:
        record = stages["fusion_backbone"]
        assert set(prints(record)) == {"state", "valid", "prefix"}
        assert len(record.prompt) == len(record.prompt_mask) > 4 and any(record.prompt_mask)


def test_the_flow_is_told_from_its_noise_to_the_actions(recorded, reference):
    for stamp_ns, chunk, stages in recorded:
        record = stages["action_head"]
        steps, told = record.steps, prints(record)
        assert [name for name in told] == [f"x/{step}" for step in range(steps + 1)]
        shape = reference.head.shape
        assert told["x/0"].same(fingerprint("", noise(shape, seed=0, stamp_ns=stamp_ns)))
        rows = np.array(record.normalised, np.float32).reshape(chunk.rows, -1)
        actions = reference.head.decode(rows).astype(np.float64)
        assert np.array_equal(actions.ravel(), chunk.values)


def test_what_a_chunk_continues_is_told(recorded):
    (_, _, first), (_, _, second) = recorded
    assert first["action_head"].guided and not len(first["action_head"].leftover)
    assert len(second["action_head"].leftover) > 0
