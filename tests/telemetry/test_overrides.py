# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a YAML file may say on placement."""

from __future__ import annotations

import pytest
from omni_ros.telemetry.overrides import Override, PlacementError, load_overrides, overrides_from


def test_a_file_says_cpus_threads_and_nice_by_process(tmp_path):
    path = tmp_path / "placement.yaml"
    path.write_text(
        'placement:\n  player: {cpus: "0"}\n  action_head: {cpus: "1-3", threads: 2, nice: 5}\n')
    assert load_overrides(path) == {
        "player": Override(cpus=(0,)),
        "action_head": Override(cpus=(1, 2, 3), threads=2, nice=5),
    }


@pytest.mark.parametrize("value, cpus", [("0", (0,)), (3, (3,)), ("2-3,6", (2, 3, 6))])
def test_cpus_are_text_or_one_number(value, cpus):
    assert overrides_from({"tts": {"cpus": value}})["tts"].cpus == cpus


def test_nothing_said_is_nothing_overridden():
    assert overrides_from(None) == {} == overrides_from({})


@pytest.mark.parametrize("data, expected", [
    ([1], "expected a mapping"),
    ({"camera": {}}, "'camera' is unknown; known are player, vision_encoder"),
    ({"tts": {"cores": 1}}, "'cores' is unknown; known are cpus, threads, nice"),
    ({"tts": 3}, "tts is 3, expected a mapping"),
    ({"tts": {"cpus": "3-1"}}, "'3-1' is no list of cpus"),
    ({"tts": {"cpus": ""}}, "cpus is empty"),
    ({"tts": {"cpus": [1, 2]}}, "write them as"),
    ({"tts": {"cpus": True}}, "write them as"),
    ({"tts": {"threads": 0}}, "threads is 0, expected 1 to 1024"),
    ({"tts": {"threads": 1.5}}, "threads is 1.5"),
    ({"tts": {"threads": True}}, "threads is True"),
    ({"tts": {"nice": 20}}, "nice is 20, expected -20 to 19"),
    ({"player": {"threads": 2}}, "its tick is one"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_with_what_is_expected(data, expected):
    with pytest.raises(PlacementError, match=expected):
        overrides_from(data)


@pytest.mark.parametrize("text", ["", "player: {cpus: 1}", "placement: {tts: {x: 1}}", "a: *b",
                                  "placement: {}\nmore: 1"])
def test_a_file_that_says_something_else_is_refused_with_its_name(tmp_path, text):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(PlacementError, match=r"x\.yaml"):
        load_overrides(tmp_path / "x.yaml")


def test_a_file_that_is_not_there_is_refused_with_its_name(tmp_path):
    with pytest.raises(PlacementError, match=r"none\.yaml: cannot be read"):
        load_overrides(tmp_path / "none.yaml")
