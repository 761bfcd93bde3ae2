# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The test is the vision encoder: what the backbone takes from it, and what it refuses."""

from __future__ import annotations

import time

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from std_msgs.msg import String

from omni_ros.msg import StageHandoff, StageTiming, TensorHandle
from omni_ros.nodes._support import COMMAND_QOS, LATCHED_QOS, time_message
from omni_ros.tensors import RingCache, TensorRing, TensorWriter, open_tensors

SENTENCE = "touch the red block"


class Encoder:
    """A stage of someone else's: speaks the public messages, knows no node."""

    def __init__(self, graph, reference, pipeline: int) -> None:
        self.specs = [type(spec)(f"image_{slot}", spec.shape, spec.dtype)
                      for spec in reference.encoder.program.outputs[:1] for slot in range(2)]
        size = TensorWriter.bytes_needed(self.specs)
        self.ring = TensorRing.create("test", slots=2, slot_bytes=size)
        self.writer = TensorWriter(self.ring, self.specs)
        self.publisher = graph.publisher(StageHandoff, "image_tokens", COMMAND_QOS)
        self.pipeline, self.seq, self.bundle = pipeline, 0, ""

    def tokens(self, seed: int) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [rng.standard_normal(spec.shape).astype(np.float32) for spec in self.specs]

    def message(self, seed: int, *, inline: bool = False, **fields) -> StageHandoff:
        """Write tokens to a slot and return the message that hands them over."""
        arrays = self.writer.begin()
        for array, values in zip(arrays.values(), self.tokens(seed)):
            array[...] = values
        self.writer.commit()
        self.seq += 1
        message = StageHandoff(
            observation_seq=self.seq, pipeline=self.pipeline, bundle=self.bundle,
            instruction=SENTENCE, instruction_seq=7, state=[0.1] * 6,
            tensors=self.writer.handles(TensorHandle, inline=inline), **fields)
        message.header.stamp = time_message(time.time_ns())
        return message

    def send(self, message: StageHandoff) -> None:
        self.publisher.publish(message)


@pytest.fixture(scope="module")
def backbone(tools, policy_tools, policy_robot, bundle, ros_domain, reference, tmp_path_factory):
    """The backbone alone, with the test on both sides of it."""
    from omni_ros.msg import PolicyStatus
    from omni_ros.nodes._stage_node import STATUSES_QOS

    graph = tools.Graph(tmp_path_factory.mktemp("handing_over"))
    try:
        graph.statuses = graph.record(PolicyStatus, "policy_status", STATUSES_QOS)
        graph.prefixes = graph.record(StageHandoff, "prefix", COMMAND_QOS)
        graph.start("fusion_backbone", robot=policy_robot(guidance="none"), bundle=str(bundle),
                    threads=1, cpus=policy_tools.all_cpus)
        graph.bring_up("fusion_backbone")
        graph.encoder = Encoder(graph, reference, pipeline=1)
        graph.eventually = tools.eventually
        graph.eventually(lambda: graph.statuses and graph.statuses.last.bundle, "a status")
        graph.encoder.bundle = graph.statuses.last.bundle
        yield graph
        graph.encoder.ring.close()
    finally:
        graph.close()


def passed(graph, message: StageHandoff) -> StageHandoff:
    """Send and return what the backbone hands on."""
    graph.encoder.send(message)
    return graph.eventually(lambda: next(
        (m for m in graph.prefixes.messages
         if (m.pipeline, m.observation_seq) == (message.pipeline, message.observation_seq)), None),
        f"the prefix\n{graph.logs()}")


def dropped(graph, message: StageHandoff, reason: str) -> None:
    """Send, and wait until the backbone counts it as dropped for a reason."""
    def count() -> int:
        status = graph.statuses.last
        return dict(zip(status.dropped_reasons, status.dropped)).get(reason, 0)

    before = count()
    graph.encoder.send(message)
    graph.eventually(lambda: count() > before, f"dropped: {reason}\n{graph.logs()}")


def prefix_of(reference, tokens: list[np.ndarray]) -> dict[str, np.ndarray]:
    """What the backbone makes of tokens, in this process."""
    backbone = reference.backbone
    backbone.release()
    for image, values in zip(backbone.images, tokens):
        image[...] = values
    backbone.set_prompt(SENTENCE)
    backbone.set_state(np.full(6, 0.1, np.float32))
    backbone.set_cameras(2)
    backbone.run()
    result = {name: array.copy() for name, array in backbone.keys_values.items()}
    return {**result, "valid": backbone.valid.copy()}


@pytest.mark.parametrize("inline", [False, True], ids=["shared memory", "inline"])
def test_another_encoder_can_stand_in(backbone, reference, inline):
    message = backbone.encoder.message(seed=1, inline=inline)
    answer = passed(backbone, message)
    opened = open_tensors(answer.tensors, RingCache())
    for name, values in prefix_of(reference, backbone.encoder.tokens(1)).items():
        np.testing.assert_array_equal(opened.arrays[name], values, err_msg=name)


def test_a_reader_that_says_nothing_of_itself_gets_the_bytes_in_the_message(backbone):
    answer = passed(backbone, backbone.encoder.message(seed=2))
    assert {tensor.transport for tensor in answer.tensors} == {TensorHandle.TRANSPORT_INLINE}


def test_stamp_number_sentence_and_state_are_handed_on_as_they_came(backbone):
    message = backbone.encoder.message(seed=3)
    answer = passed(backbone, message)
    for field in ("header", "observation_seq", "pipeline", "bundle", "instruction",
                  "instruction_seq", "state"):
        assert getattr(answer, field) == getattr(message, field)


def test_a_slot_that_was_overwritten_before_it_was_read_is_not_used(backbone):
    message = backbone.encoder.message(seed=4)
    for _ in range(2):
        backbone.encoder.writer.begin()  # the ring has two slots: the first is taken again
    dropped(backbone, message, "overwritten")


def test_a_slot_that_is_overwritten_at_any_moment_is_noticed(backbone, reference):
    """By force: slots are taken again while the backbone may be reading them."""
    encoder, answers = backbone.encoder, RingCache()
    rng, sent, read = np.random.default_rng(0), {}, 0

    def overwritten() -> int:
        status = backbone.statuses.last
        return dict(zip(status.dropped_reasons, status.dropped)).get("overwritten", 0)

    def overwrite() -> None:
        for _ in range(2):  # the ring has two slots
            for array in encoder.writer.begin().values():
                array.fill(np.nan)

    before = overwritten()
    for seed in range(100, 160):
        message = encoder.message(seed)
        sent[message.observation_seq] = seed
        # Some before they are read, whoever is the faster; and long enough for that to be seen, as
        # a busy backbone takes the newest only.
        if seed % 16 == 4:
            overwrite()
            encoder.send(message)
            time.sleep(0.25)
            continue
        encoder.send(message)
        # Now and then long enough for the work to be done, on a busy machine too.
        time.sleep(float(rng.uniform(0.0, 0.004) if seed % 8 else 0.25))
        overwrite()
    last = passed(backbone, encoder.message(seed=5))
    assert last.observation_seq > max(sent)
    for answer in backbone.prefixes.messages:
        if answer.observation_seq in sent and answer.pipeline == encoder.pipeline:
            tokens = encoder.tokens(sent[answer.observation_seq])
            opened = open_tensors(answer.tensors, answers).arrays
            for name, values in prefix_of(reference, tokens).items():
                np.testing.assert_array_equal(opened[name], values, err_msg=name)
            read += 1
    assert read > 0, "none came through whole: nothing was compared"
    backbone.eventually(lambda: overwritten() > before, "none was overwritten: nothing was noticed")


def test_a_stage_of_another_bundle_is_not_listened_to(backbone):
    message = backbone.encoder.message(seed=6)
    message.bundle = 64 * "0"
    dropped(backbone, message, "other bundle")


def test_an_observation_that_is_not_newer_is_dropped(backbone):
    message = backbone.encoder.message(seed=7)
    passed(backbone, message)
    dropped(backbone, message, "out of order")


def test_an_observation_that_no_chunk_could_be_played_of_is_dropped(backbone):
    message = backbone.encoder.message(seed=8)
    message.header.stamp = time_message(time.time_ns() - 60_000_000_000)
    dropped(backbone, message, "too old")


def test_what_is_left_of_an_earlier_pipeline_is_dropped(backbone):
    late = backbone.encoder.message(seed=9)
    backbone.encoder.pipeline += 1
    passed(backbone, backbone.encoder.message(seed=10))
    dropped(backbone, late, "past pipeline")


def test_a_malformed_hand_off_of_another_encoder_blocks_nothing(backbone):
    encoder = backbone.encoder
    passed(backbone, encoder.message(seed=16))
    foreign = encoder.message(seed=17)
    foreign.pipeline, foreign.instruction_seq, foreign.instruction = 99, 99, "something else"
    foreign.observation_seq, foreign.tensors = 2**63, []
    dropped(backbone, foreign, "malformed")
    passed(backbone, encoder.message(seed=18))


@pytest.mark.parametrize("field, value", [
    ("stamp", Time(sec=-1)), ("stamp", Time(sec=2**31 - 1, nanosec=2**32 - 1)),
    ("instruction", "x" * 20_000), ("timings", [StageTiming(stage="x" * 200)]),
    ("timings", [StageTiming(stage="x")] * 200)])
def test_what_cannot_be_is_dropped_and_the_stage_lives(backbone, field, value):
    message = backbone.encoder.message(seed=19)
    setattr(message.header if field == "stamp" else message, field, value)
    dropped(backbone, message, "malformed")
    passed(backbone, backbone.encoder.message(seed=20))


@pytest.mark.parametrize("handed_over", [Time(), Time(sec=-2**31)])
def test_a_time_of_handing_over_that_cannot_be_counts_as_none(backbone, handed_over):
    answer = passed(backbone, backbone.encoder.message(seed=21, handed_over=handed_over))
    hop = next(timing for timing in answer.timings if timing.stage == "hand_off")
    assert 0 <= hop.duration.sec < 60


def test_a_sentence_that_is_said_again_and_again_drops_nothing(backbone):
    """As `ros2 topic pub` does, once a second, without --once."""
    sentences = backbone.publisher(String, "instruction", LATCHED_QOS)
    for seed in range(30, 36):
        sentences.publish(String(data=SENTENCE))
        passed(backbone, backbone.encoder.message(seed))
    status = backbone.statuses.last
    assert "past instruction" not in status.dropped_reasons


def test_a_ring_that_is_gone_is_not_used_and_then_asked_for_inline(backbone):
    encoder = backbone.encoder
    for seed in (11, 12):
        message = encoder.message(seed)
        for tensor in message.tensors:
            tensor.ring = "omni_ros.1.1.0123456789abcdef.test"
        dropped(backbone, message, "unreachable")
        encoder.writer = TensorWriter(encoder.ring, encoder.specs)  # handles anew
    backbone.eventually(lambda: backbone.statuses.last.wants_inline, "the wish")
    passed(backbone, encoder.message(seed=13))
    backbone.eventually(lambda: not backbone.statuses.last.wants_inline, "no wish any more")


@pytest.mark.parametrize("field, value", [
    ("shape", [1, 2]), ("nbytes", 12), ("offset", 1 << 60), ("dtype", 200), ("slot", 99),
    ("name", "image_7"), ("transport", 0), ("ring", "../etc/passwd"), ("shape", [1 << 40, 1 << 40]),
])
def test_a_handle_that_makes_no_sense_is_dropped_and_the_stage_lives(backbone, field, value):
    encoder = backbone.encoder
    message = encoder.message(seed=14)
    encoder.writer = TensorWriter(encoder.ring, encoder.specs)
    setattr(message.tensors[0], field, value)
    dropped(backbone, message, "malformed")


@pytest.mark.parametrize("state", [[float("nan")] * 6, [], [0.1] * 7])
def test_a_state_that_is_not_the_policys_is_dropped(backbone, state):
    message = backbone.encoder.message(seed=15)
    message.state = state
    moment = time.monotonic()
    dropped(backbone, message, "malformed")
    said = "the state is not finite" if len(state) == 6 else (
        f"has shape [{len(state)}]; the policy takes [6] (shoulder_pan, ")
    backbone.eventually(lambda: any(
        said in m.text for _, m in backbone.statuses.since(moment)), f"the reason: {said}")
