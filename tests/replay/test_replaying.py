# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A recording done again: what is the same, what cannot be known, and what another machine may do."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import yaml

from omni_ros.replay.bag import Bag
from omni_ros.replay.contents import read_contents
from omni_ros.replay.live import expect
from omni_ros.replay.replaying import Options, replay, robot_of
from omni_ros.replay.verdict import Kind


def kinds(result) -> list[Kind]:
    return [one.kind for one in result.tally.verdicts]


def test_the_same_bundle_on_the_same_machine_gives_the_same_bits(recording, bundle):
    result = replay(recording, bundle)
    assert kinds(result) == [Kind.SAME] * 3
    assert result.overall is Kind.SAME and result.bits and not result.missing


def test_chunks_come_in_the_order_of_the_recording(recording, bundle):
    result = replay(recording, bundle)
    assert [one.chunk_id for one in result.tally.verdicts] == [1, 2, 3]


def test_guided_chunks_go_on_from_what_was_left_of_the_one_before(session, write_bag, bundle):
    result = replay(write_bag(session(4, guided=True)), bundle)
    assert kinds(result) == [Kind.SAME] * 4


def test_guided_chunks_without_what_was_left_are_not_the_same(session, write_bag, bundle):
    """That the leftover counts at all: without it the second chunk is another one."""
    messages = session(2, guided=True)
    for one in messages:
        if one.topic == "/policy_record":
            one.value.leftover = one.value.leftover[:0]
    assert kinds(replay(write_bag(messages), bundle)) == [Kind.SAME, Kind.DIFFERENT]


def test_pictures_that_were_dropped_are_listed_and_are_no_difference(session, write_bag, bundle):
    """Field case 31: five pictures are taken out of the bag."""
    messages = session(6)
    front = [one for one in messages if one.topic == "/front/image_raw"]
    gone = [id(one) for one in front[:5]]
    result = replay(write_bag([one for one in messages if id(one) not in gone]), bundle)
    assert result.overall is Kind.INCOMPLETE
    assert kinds(result) == [Kind.INCOMPLETE] * 5 + [Kind.SAME]
    assert result.missing == [
        f"the picture of camera1 stamped {stamp_s(one):.6f} s" for one in front[:5]]


def test_dropped_pictures_of_a_bag_without_records(session, write_bag, bundle, robot_file):
    messages = session(6, records=False, all_pictures=True)
    begin = 1_700_000_000_000_000_000
    beats = {begin + number * 528_000_000 for number in range(5)}
    left = [one for one in messages if not (
        one.topic == "/front/image_raw" and round(stamp_s(one) * 1e9) in {
            round(at * 1e-9 * 1e9) for at in beats})]
    assert len(messages) - len(left) == 5
    result = replay(write_bag(left), bundle, options=Options(robot=robot_file))
    assert result.overall is Kind.INCOMPLETE
    assert kinds(result) == [Kind.INCOMPLETE] * 5 + [Kind.SAME]
    assert len(result.missing) == 5 and "stamped by" in result.missing[0]


def test_the_next_picture_in_place_of_a_dropped_one_is_doubted(
        session, write_bag, bundle, robot_file):
    """Another camera's picture still bears the stamp: the next of this one would pass for the one meant."""
    messages = session(3, records=False, all_pictures=True)
    wrist = [one for one in messages if one.topic == "/wrist/image_raw"]
    beat = wrist[16]  # of the second chunk
    result = replay(write_bag([one for one in messages if one is not beat]), bundle,
                    options=Options(robot=robot_file))
    assert kinds(result) == [Kind.SAME, Kind.INCOMPLETE, Kind.SAME]
    assert "camera2 sends a picture every 33 ms" in result.tally.verdicts[1].text


def stamp_s(message) -> float:
    stamp = message.value.header.stamp
    return stamp.sec + stamp.nanosec * 1e-9


def test_a_record_that_was_dropped_is_listed(session, write_bag, bundle):
    messages = session(3)
    gone = next(one for one in messages if one.topic == "/policy_record"
                and one.value.stage == "vision_encoder")
    result = replay(write_bag([one for one in messages if one is not gone]), bundle)
    assert kinds(result) == [Kind.INCOMPLETE, Kind.SAME, Kind.SAME]
    assert result.missing == ["the vision_encoder's record of observation 10"]


def test_a_chunk_of_fresh_joints_whose_record_was_lost_is_incomplete(session, write_bag, bundle):
    messages = session(2)
    chunk = next(one for one in messages if one.topic == "/action_chunk")
    header = dataclasses.replace(chunk.value.header, stamp=dataclasses.replace(
        chunk.value.header.stamp, nanosec=70_000_000))
    again = dataclasses.replace(chunk, at=chunk.at + 50_000_000, value=dataclasses.replace(
        chunk.value, header=header, chunk_id=100, timings=chunk.value.timings[-1:]))
    result = replay(write_bag([*messages, again]), bundle)
    assert result.overall is Kind.INCOMPLETE
    assert sorted(kinds(result)) == [Kind.INCOMPLETE, Kind.SAME, Kind.SAME]  # by name
    assert result.missing == ["the action_head's record of chunk 100"]


def test_a_chunk_whose_drawing_was_not_recorded_is_incomplete(session, write_bag, bundle):
    messages = session(2)
    gone = next(one for one in messages if one.topic == "/policy_record"
                and one.value.stage == "action_head")
    result = replay(write_bag([one for one in messages if one is not gone]), bundle)
    assert kinds(result) == [Kind.INCOMPLETE, Kind.SAME]
    assert "the action_head's record of chunk 1" in result.missing[0]


@pytest.mark.parametrize("steps, why", [
    (10, "drawn with noise of 3 values"), (0, "drawn in 0 steps"), (4_000_000_000, "in 4000000000 steps")])
def test_a_draw_that_no_policy_can_have_made_is_said_and_not_computed(
        session, write_bag, bundle, steps, why):
    messages = session(1)
    head = next(one for one in messages if one.topic == "/policy_record"
                and one.value.stage == "action_head")
    head.value.steps, head.value.drawn_noise = steps, np.zeros(3, np.float32)
    result = replay(write_bag(messages), bundle)
    assert kinds(result) == [Kind.DIFFERENT] and why in result.tally.verdicts[0].text


def test_a_chunk_that_was_dropped_is_listed(session, write_bag, bundle):
    messages = session(3)
    gone = [one for one in messages if one.topic == "/action_chunk"][1]
    result = replay(write_bag([one for one in messages if one is not gone]), bundle)
    assert kinds(result) == [Kind.SAME] * 2 and result.overall is Kind.INCOMPLETE
    assert result.missing[0].startswith("chunk 2, stamped")


def test_another_machine_may_round_otherwise(session, write_bag, bundle):
    """The recorded numbers are a rounding off, as another processor's would be."""
    messages = session(2, versions={"machine": "aarch64 something"})
    nudge(messages, 1e-6)
    result = replay(write_bag(messages), bundle)
    assert kinds(result) == [Kind.WITHIN] * 2 and not result.bits
    assert result.why_not == ["machine differs"]


def test_another_machine_may_not_do_something_else(session, write_bag, bundle):
    messages = session(2, versions={"machine": "aarch64 something"})
    nudge(messages, 1e-2)
    assert kinds(replay(write_bag(messages), bundle)) == [Kind.DIFFERENT] * 2


def test_on_the_same_machine_not_a_bit_may_differ(session, write_bag, bundle):
    messages = session(2)
    nudge(messages, 1e-9)
    assert kinds(replay(write_bag(messages), bundle)) == [Kind.DIFFERENT] * 2


def test_strict_allows_no_bit_on_any_machine(session, write_bag, bundle):
    messages = session(1, versions={"numpy": "1.0"})
    nudge(messages, 1e-6)
    bag = write_bag(messages)
    assert kinds(replay(bag, bundle)) == [Kind.WITHIN]
    assert kinds(replay(bag, bundle, options=Options(strict=True))) == [Kind.DIFFERENT]


def test_a_tolerance_can_be_given(session, write_bag, bundle):
    messages = session(1)
    nudge(messages, 1e-3)
    bag = write_bag(messages)
    assert kinds(replay(bag, bundle, options=Options(tolerance=1e-2))) == [Kind.WITHIN]
    assert kinds(replay(bag, bundle, options=Options(tolerance=1e-4))) == [Kind.DIFFERENT]


def nudge(messages, share: float) -> None:
    """Move recorded actions, and what the network gave for them, by a share of a spread."""
    for one in messages:
        if one.topic == "/action_chunk":
            one.value.values = one.value.values + 0.2 * share
        elif one.topic == "/policy_record" and one.value.stage == "action_head":
            one.value.normalised = (one.value.normalised + np.float32(share)).astype(np.float32)
            one.value.fingerprints = []


def test_what_a_later_exporter_writes_out_was_there_before_as_a_default(session, write_bag, bundle):
    """Exported again, by a version that knows more fields, it is the same bundle: not a bit may differ."""
    messages = session(2)
    for one in messages:
        if one.topic == "/recording_info":
            manifest = yaml.safe_load(one.value.manifest)
            del manifest["conventions"], manifest["tokenizer"]["state_width"]
            one.value.manifest = yaml.safe_dump(manifest, sort_keys=False)
            one.value.bundle = "0" * 64
    bag = write_bag(messages)
    result = replay(bag, bundle)
    assert result.bits and result.changes == [] and result.overall is Kind.SAME
    with Bag(bag) as opened:
        contents = read_contents(opened)
        assert expect(contents, bundle, robot_of(contents)[0]).tolerance is None


def test_two_bundles_are_compared_on_what_was_recorded(recording, bundle, changed_bundle):
    other = changed_bundle(lambda m: dataclasses.replace(
        m, tolerance=dataclasses.replace(m.tolerance, across_machines=0.4)))
    result = replay(recording, bundle, against=other)
    assert result.overall is Kind.SAME and result.against == "tiny"


def test_two_bundles_that_differ_are_told_where(recording, bundle, changed_bundle):
    other = changed_bundle(lambda m: dataclasses.replace(
        m, flow=dataclasses.replace(m.flow, steps=3, dt=-1.0 / 3.0),
        dimensions=dataclasses.replace(m.dimensions, steps=3)))
    result = replay(recording, bundle, against=other)
    assert {one.stage for one in result.tally.verdicts} == {"step"}
    assert "the flow had 3 steps and has 4" in result.tally.verdicts[0].text


def test_progress_is_told(recording, bundle):
    seen = []
    replay(recording, bundle, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_bundle_that_does_not_fit_the_robot_is_refused(recording, changed_bundle):
    other = changed_bundle(lambda m: dataclasses.replace(m, joints=(
        dataclasses.replace(m.joints[0], name="tail"), *m.joints[1:])))
    with pytest.raises(ValueError, match="tail unknown"):
        replay(recording, other)


def test_a_policy_that_answers_with_no_numbers_is_different(
        recording, changed_bundle, bundle):
    table = np.load(bundle / "embeddings.npy")
    if table.dtype.kind != "f":
        pytest.skip("a table of another kind")
    import io

    buffer = io.BytesIO()
    np.save(buffer, np.full_like(table, np.nan))
    other = changed_bundle(lambda m: m, {"embeddings.npy": buffer.getvalue()})
    result = replay(recording, other)
    assert kinds(result) == [Kind.DIFFERENT] * 3
    assert "cannot be computed" in result.tally.verdicts[0].text
    against = replay(recording, bundle, against=other)
    assert kinds(against) == [Kind.DIFFERENT] * 3
    assert "tiny cannot compute it" in against.tally.verdicts[0].text
