# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A machine's hardware as a file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from omni_ros.telemetry.hardware_profile import (
    HardwareError,
    from_mapping,
    load_hardware,
    save_hardware,
    to_mapping,
)
from omni_ros.telemetry.placement import place


@pytest.fixture
def orin(recorded):
    return recorded("jetson_agx_orin")


@pytest.mark.parametrize("name", ["development_vm", "jetson_agx_orin", "rk3588_rock_5b"])
def test_a_recorded_profile_reads_back_equal(recorded, tmp_path, name):
    hardware = recorded(name)
    save_hardware(hardware, tmp_path / "profile.yaml")
    again = load_hardware(tmp_path / "profile.yaml")
    assert replace(again, source=hardware.source) == hardware


def test_a_profile_knows_where_it_is_from_and_placement_says_so(orin, tmp_path):
    save_hardware(orin, tmp_path / "orin.yaml")
    chosen = place(load_hardware(tmp_path / "orin.yaml"))
    assert any("orin.yaml, not of this machine" in note for note in chosen.notes)
    assert chosen["vision_encoder"].threads == 10


def test_a_profile_replaces_another_and_leaves_nothing_else(orin, tmp_path):
    (tmp_path / "profile.yaml").write_text("old")
    save_hardware(orin, tmp_path / "profile.yaml")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["profile.yaml"]
    assert load_hardware(tmp_path / "profile.yaml").model == orin.model


@pytest.mark.parametrize("change, expected", [
    ({"format": "other 2"}, "format is 'other 2', expected 'omni_ros hardware 1'"),
    ({"speed": 1}, "'speed' is unknown"),
    ({"cpus": []}, "an entry for each cpu"),
    ({"cpus": [{"number": 0, "core": 0, "colour": "red"}]}, "'colour' is unknown"),
    ({"cpus": [{"number": 0, "core": 0}] * 2}, "a number stands twice"),
    ({"cpus": [{"number": 0, "core": 7}]}, "not in the list"),
    ({"cpus": [{"number": True, "core": 0}]}, "number is True"),
    ({"cpus": [{"number": 0, "core": 0, "capacity": -3}]}, "capacity is -3"),
    ({"cpus": [{"number": 0, "core": 0, "max_khz": 0}]}, "max_khz is 0"),
    ({"cpus": [{"number": 0, "core": 0, "efficient": 1}]}, "efficient is 1"),
    ({"allowed": "5-1"}, "allowed: '5-1' is no list of cpus"),
    ({"quota": 0}, "quota is 0"),
    ({"quota": float("nan")}, "quota is nan"),
    ({"memory": {"total": "8G"}}, "total is '8G'"),
    ({"missing": "nothing"}, "expected a list of text"),
])  # fmt: skip
def test_a_profile_that_makes_no_sense_is_refused_with_what_is_wrong(orin, change, expected):
    with pytest.raises(HardwareError, match=expected.replace("(", r"\(")):
        from_mapping({**to_mapping(orin), **change}, "x")


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: &b 1", "{", "format: omni_ros hardware 1"])
def test_a_file_that_is_no_profile_is_refused_with_its_name_and_how_to_make_one(tmp_path, text):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(HardwareError, match=r"x\.yaml: .*--record-hardware"):
        load_hardware(tmp_path / "x.yaml")


def test_a_file_that_is_not_there_is_refused_with_its_name(tmp_path):
    with pytest.raises(HardwareError, match=r"none\.yaml: cannot be read"):
        load_hardware(tmp_path / "none.yaml")
