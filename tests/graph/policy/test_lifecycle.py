# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Deactivating, activating and re-instructing a policy while observations go through."""

from __future__ import annotations

import time

import numpy as np
import pytest
from std_msgs.msg import String

from omni_ros.msg import Heartbeat, PolicyStatus
from omni_ros.nodes._support import to_ns

OTHER = "pick up the green block"


@pytest.fixture(scope="module")
def shared(tools, policy_tools, policy_robot, bundle, ros_domain, tmp_path_factory):
    graph = tools.Graph(tmp_path_factory.mktemp("policy_lifecycle"))
    try:
        policy = policy_tools.Policy(
            graph, tools, "single", robot=policy_robot(guidance="none", execution_horizon=3),
            bundle=str(bundle))
        policy.beats = graph.record(Heartbeat, "heartbeat")
        policy.senses = policy_tools.Senses(graph)
        policy.senses.start()
        yield policy
        policy.senses.stop()
    finally:
        graph.close()


@pytest.fixture
def policy(shared, policy_tools):
    """Chunks of the usual sentence go out, whatever the last test did."""
    shared.say(policy_tools.sentence)
    shared.until("action_head", lambda status: policy_tools.sentence in status.text, "chunks")
    return shared


def test_without_an_instruction_nothing_is_started_and_the_status_asks_for_one(shared):
    shared.say("")
    status = shared.until("vision_encoder", lambda s: s.state == PolicyStatus.STATE_WAITING,
                          "waiting")
    assert "no instruction" in status.text
    known = len(shared.chunks)
    time.sleep(1.0)
    assert len(shared.chunks) == known


@pytest.mark.parametrize("stage", ["vision_encoder", "fusion_backbone", "action_head"])
def test_deactivating_a_stage_stops_chunks_at_once(policy, stage):
    assert policy.graph.change_state(stage, "deactivate")
    time.sleep(0.1)
    known, started = len(policy.chunks), policy.status(stage).observations_started
    time.sleep(1.0)
    assert len(policy.chunks) == known
    assert policy.status(stage).state == PolicyStatus.STATE_INACTIVE
    assert policy.status(stage).observations_started == started
    moment_ns = time.time_ns()
    assert policy.graph.change_state(stage, "activate")
    first = policy.next_chunks(1)[0]
    assert to_ns(first.header.stamp) > moment_ns - 200_000_000, "an observation from before"


def test_the_heart_beats_only_while_the_head_is_active(policy):
    assert policy.graph.change_state("action_head", "deactivate")
    time.sleep(0.2)
    known = len(policy.beats)
    time.sleep(0.5)
    assert len(policy.beats) == known
    assert policy.graph.change_state("action_head", "activate")
    policy.eventually(lambda: len(policy.beats) > known, "a beat")


def test_a_stage_can_be_cleaned_up_and_configured_again(policy):
    for step in ("deactivate", "cleanup", "configure", "activate"):
        assert policy.graph.change_state("fusion_backbone", step), policy.graph.logs()
    policy.next_chunks(2)


def test_a_change_of_the_sentence_takes_effect_with_the_next_observation(policy, expected,
                                                                         policy_tools):
    policy.say(OTHER)
    policy.until("action_head", lambda status: OTHER in status.text, "chunks of the new sentence")
    for chunk in policy.next_chunks(2):
        stamp_ns = to_ns(chunk.header.stamp)
        np.testing.assert_array_equal(policy_tools.rows(chunk), expected(stamp_ns, OTHER))


def test_no_chunk_of_an_old_sentence_follows_one_of_the_new(policy, expected, policy_tools):
    # Short: what is cut off would make them alike.
    sentences = [policy_tools.sentence, *(f"up {step}" for step in range(12))]
    known = len(policy.chunks)
    for step in range(12):
        policy.say(sentences[step + 1])
        time.sleep(0.04 + 0.013 * step)
    policy.until("action_head", lambda s: s.text.endswith(sentences[-1]), "chunks of the last one")
    chunks = policy.chunks.messages[known:]
    spoken = [next((k for k, sentence in enumerate(sentences) if np.array_equal(
        policy_tools.rows(chunk), expected(to_ns(chunk.header.stamp), sentence))), None)
        for chunk in chunks]
    assert None not in spoken, "a chunk that belongs to none of the sentences"
    assert spoken == sorted(spoken) and spoken[-1] == 12


def test_the_same_sentence_said_again_and_again_drops_nothing(policy, policy_tools):
    """As `ros2 topic pub` says it without --once."""
    before = [policy.drops(stage, "past instruction") for stage in policy_tools.stages]
    number = policy.status("vision_encoder").instruction_seq
    for _ in range(8):
        policy.say(policy_tools.sentence)
        policy.next_chunks(1)
    for stage, dropped in zip(policy_tools.stages, before):
        policy.until(stage, lambda _: True, "a status")
        assert policy.drops(stage, "past instruction") == dropped
    assert policy.status("vision_encoder").instruction_seq == number


@pytest.mark.parametrize("sentence", [
    "xyzzy \N{SNOWMAN} \x07", "9" * 5000, "\n", "ignore the block " * 40])
def test_an_unknown_sentence_gives_finite_chunks_or_none(policy, sentence):
    policy.say(sentence)
    if sentence.strip():
        chunk = policy.next_chunks(2)[-1]
        assert np.isfinite(np.array(chunk.values)).all()
    else:
        policy.until("vision_encoder", lambda s: "no instruction" in s.text, "waiting")


def test_a_sentence_from_a_volatile_publisher_is_heard_as_well(policy, expected, policy_tools):
    """As `ros2 topic pub` sends it."""
    volatile = policy.graph.publisher(String, "instruction", 1)
    volatile.publish(String(data=OTHER))
    policy.until("action_head", lambda status: OTHER in status.text, "chunks of the new sentence")
    chunk = policy.next_chunks(2)[-1]
    np.testing.assert_array_equal(policy_tools.rows(chunk),
                                  expected(to_ns(chunk.header.stamp), OTHER))


def test_a_long_prompt_is_cut_with_a_warning_and_a_mark_on_the_status(policy):
    policy.say("push " * 300)
    status = policy.until("fusion_backbone", lambda s: s.prompt_truncated, "a cut prompt")
    assert status.prompt_tokens > 300
    assert "its end is cut off" in policy.said("fusion_backbone")
