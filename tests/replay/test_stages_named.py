# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Each kind of change is caught, and the stage where it begins is named."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from omni_ros.replay.replaying import Options, Replay, replay
from omni_ros.replay.verdict import Kind


def stages(result: Replay) -> set[str]:
    return {one.stage for one in result.tally.verdicts}


def caught(result: Replay, stage: str) -> str:
    """Check that every chunk is different, first at a stage; return the first one's words."""
    assert {one.kind for one in result.tally.verdicts} == {Kind.DIFFERENT}
    assert stages(result) == {stage}
    return result.tally.verdicts[0].text


def tokenizer_with(bundle: Path, edit: Callable[[dict], None]) -> bytes:
    content = json.loads((bundle / "tokenizer.json").read_text(encoding="utf-8"))
    edit(content)
    return json.dumps(content).encode()


def test_a_pixel_constant(recording, changed_bundle):
    other = changed_bundle(lambda m: dataclasses.replace(
        m, image=dataclasses.replace(m.image, high=1.0 - 1.0 / 128)))
    text = caught(replay(recording, other), "pixels")
    assert "camera1: off by about" in text


def test_a_pad_value_of_pixels(recording, changed_bundle):
    other = changed_bundle(lambda m: dataclasses.replace(
        m, image=dataclasses.replace(m.image, pad_value=0.0)))
    caught(replay(recording, other), "pixels")


def test_a_pixel_constant_that_hardly_moves_the_actions(recording, changed_bundle):
    """The bundle's tolerance is for rounding, not for what somebody changed."""
    other = changed_bundle(lambda m: dataclasses.replace(
        m, image=dataclasses.replace(m.image, high=1.0 - 2e-5)))
    result = replay(recording, other, options=Options(tolerance=0.01))
    assert "what differs is not the programs' rounding" in caught(result, "pixels")


def test_a_statistic_of_the_state(recording, changed_bundle, bundle):
    statistics = json.loads((bundle / "statistics.json").read_text(encoding="utf-8"))
    statistics["observation.state"]["mean"][2] += 0.01
    other = changed_bundle(lambda m: m, {"statistics.json": json.dumps(statistics).encode()})
    assert "of the state" in caught(replay(recording, other), "normalisation")


def test_a_statistic_of_the_actions(recording, changed_bundle, bundle):
    statistics = json.loads((bundle / "statistics.json").read_text(encoding="utf-8"))
    statistics["action"]["std"][4] *= 1.01
    other = changed_bundle(lambda m: m, {"statistics.json": json.dumps(statistics).encode()})
    text = caught(replay(recording, other), "normalisation")
    assert "of the actions: the network's numbers are the same, wrist_roll differs" in text


def test_the_tokenizer(recording, changed_bundle, bundle):
    from tokenizers import Tokenizer

    used = Tokenizer.from_file(str(bundle / "tokenizer.json")).encode("touch the red block").tokens

    def edit(content: dict) -> None:
        vocabulary = content["model"]["vocab"]
        one, two = used[0], next(token for token in used if token != used[0])
        vocabulary[one], vocabulary[two] = vocabulary[two], vocabulary[one]

    other = changed_bundle(lambda m: m, {"tokenizer.json": tokenizer_with(bundle, edit)})
    text = caught(replay(recording, other), "tokens")
    assert "'touch the red block'" in text and "the first to differ is token 0" in text


def test_the_end_of_the_prompt(recording, changed_bundle):
    other = changed_bundle(lambda m: dataclasses.replace(
        m, tokenizer=dataclasses.replace(m.tokenizer, newline=not m.tokenizer.newline)))
    caught(replay(recording, other), "tokens")


def test_the_number_of_steps(recording, changed_bundle):
    other = changed_bundle(lambda m: dataclasses.replace(
        m, flow=dataclasses.replace(m.flow, steps=5, dt=-0.2),
        dimensions=dataclasses.replace(m.dimensions, steps=5)))
    text = caught(replay(recording, other), "step")
    assert "the flow had 4 steps and has 5" in text


def test_a_period_of_the_times(recording, changed_bundle):
    """The flow's own constants show at the first step: what went into it is the same."""
    other = changed_bundle(lambda m: dataclasses.replace(
        m, flow=dataclasses.replace(m.flow, max_period=3.9)))
    assert "of 4: off by about" in caught(replay(recording, other), "step 1")


def _swapped(joints):
    return (joints[1], joints[0], *joints[2:])


def test_joints_of_state_and_actions_in_another_order(recording, changed_bundle):
    other = changed_bundle(lambda m: dataclasses.replace(
        m, joints=_swapped(m.joints), state_joints=_swapped(m.state_joints)))
    assert "of the state: value 1 is where value 0 was" in caught(
        replay(recording, other), "joint order")


def test_joints_of_the_actions_in_another_order(recording, changed_bundle):
    other = changed_bundle(lambda m: dataclasses.replace(m, joints=_swapped(m.joints)))
    text = caught(replay(recording, other), "joint order")
    assert "column 0 moved shoulder_pan and moves shoulder_lift" in text


def test_a_unit_in_the_robot_yaml(recording, robot_text, changed_bundle, tmp_path):
    import yaml

    content = yaml.safe_load(robot_text)
    content["joints"][3]["policy_unit"] = "deg"
    (tmp_path / "arm.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    def degrees(joints):
        return tuple(dataclasses.replace(one, unit="deg") if one.name == "wrist_flex" else one
                     for one in joints)

    other = changed_bundle(lambda m: dataclasses.replace(
        m, joints=degrees(m.joints), state_joints=degrees(m.state_joints)))
    result = replay(recording, other, options=Options(robot=str(tmp_path / "arm.yaml")))
    assert "value 3 of the state was" in caught(result, "units")
    assert any("policy_unit was rad, is deg" in str(change) for change in result.changes)


def test_the_table_of_embeddings(recording, changed_bundle, bundle):
    table = np.load(bundle / "embeddings.npy")
    buffer = io.BytesIO()
    np.save(buffer, table * table.dtype.type(1.5) if table.dtype.kind == "f" else table ^ 1)
    other = changed_bundle(lambda m: m, {"embeddings.npy": buffer.getvalue()})
    assert "keys and values" in caught(replay(recording, other), "prefix")


def test_what_was_changed_is_listed_in_the_order_of_the_stages(recording, changed_bundle, bundle):
    statistics = json.loads((bundle / "statistics.json").read_text(encoding="utf-8"))
    statistics["action"]["std"][4] *= 1.01
    other = changed_bundle(
        lambda m: dataclasses.replace(m, image=dataclasses.replace(m.image, high=0.9)),
        {"statistics.json": json.dumps(statistics).encode()})
    result = replay(recording, other)
    assert [change.stage for change in result.changes] == ["pixels", "normalisation"]
    assert str(result.changes[0]) == "image.high was 1.0, is 0.9"


def test_without_fingerprints_the_manifests_name_the_stage(session, write_bag, changed_bundle):
    messages = session(2)
    for one in messages:
        if one.topic == "/policy_record":
            one.value.fingerprints = []
            one.value.prompt = one.value.prompt[:0]
    other = changed_bundle(lambda m: dataclasses.replace(
        m, image=dataclasses.replace(m.image, high=0.5)))
    text = caught(replay(write_bag(messages), other), "pixels")
    assert "as it seems: image.high was 1.0, is 0.5" in text and "no fingerprints" in text


def test_without_any_record_another_scale_of_the_actions_is_seen_in_them(
        bare_recording, changed_bundle, bundle, robot_file):
    statistics = json.loads((bundle / "statistics.json").read_text(encoding="utf-8"))
    statistics["action"]["std"][4] *= 1.5
    other = changed_bundle(lambda m: m, {"statistics.json": json.dumps(statistics).encode()})
    caught(replay(bare_recording, other, options=Options(robot=robot_file)), "normalisation")


def test_without_any_record_joints_changed_over_are_seen_in_the_actions(
        bare_recording, changed_bundle, robot_file):
    other = changed_bundle(lambda m: dataclasses.replace(m, joints=_swapped(m.joints)))
    text = caught(replay(bare_recording, other, options=Options(robot=robot_file)), "joint order")
    assert "shoulder_lift is where shoulder_pan was" in text


def test_without_any_record_it_says_that_it_cannot_tell(bare_recording, changed_bundle, robot_file):
    other = changed_bundle(lambda m: dataclasses.replace(
        m, image=dataclasses.replace(m.image, high=0.5)))
    result = replay(bare_recording, other, options=Options(robot=robot_file))
    assert stages(result) == {""}
    assert "where it began is not known" in result.tally.verdicts[0].text


def test_a_change_that_no_recorded_sentence_meets_is_the_same(recording, changed_bundle, bundle):
    """A verdict is about what the robot did, not about files."""
    def edit(content: dict) -> None:
        content["added_tokens"][0]["lstrip"] = not content["added_tokens"][0]["lstrip"]

    other = changed_bundle(lambda m: m, {"tokenizer.json": tokenizer_with(bundle, edit)})
    result = replay(recording, other)
    assert result.overall is Kind.SAME
    assert [change.stage for change in result.changes] == ["tokens"]
