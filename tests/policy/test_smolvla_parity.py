# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Bundles compute what LeRobot recorded, and sets of any sizes are taken as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from omni_ros.parity.policy import parity_rows
from omni_ros.parity.reference import read_reference

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"
SETS = sorted(path.name for path in ORACLES.glob("smolvla_*"))
PI0_SETS = sorted(path.name for path in ORACLES.glob("pi0*"))


def failures(policy, folder: Path) -> list[str]:
    rows = parity_rows(policy, read_reference(folder))
    assert len(rows) > 20
    return [f"{row.name}: {row.value} {row.note}" for row in rows if not row.passed]


@pytest.mark.parametrize("recipe", ["fp32", "int8"])
@pytest.mark.parametrize("name", SETS)
def test_every_tensor_is_lerobots_and_every_input_counts(run_bundle, name, recipe):
    assert failures(run_bundle(name, recipe), ORACLES / name) == []


@pytest.mark.parametrize("name", PI0_SETS)
def test_every_tensor_of_a_pi0_is_lerobots_and_every_input_counts(run_bundle, name):
    rows = parity_rows(run_bundle(name), read_reference(ORACLES / name))
    assert [f"{row.name}: {row.value} {row.note}" for row in rows if not row.passed] == []
    named = {row.name: row for row in rows}
    length = 968 if name.startswith("pi05") else 816
    assert named["prefix, which tokens count"].note.endswith(f"of {length}")
    assert named["suffix, positions"].note == f"{50 if length == 968 else 51} tokens"
    assert sum(name.startswith("RTC") for name in named) == 8


@pytest.mark.parametrize("name", ["three_cameras", "marks_and_odd_layers"])
def test_sets_of_other_sizes_pass_without_a_change(run_bundle, made_set, name):
    folder = made_set(name)
    assert failures(run_bundle(folder=folder / "fp32.bundle"), folder) == []


def test_a_set_of_another_checkpoint_is_refused_with_both_sizes(run_bundle):
    with pytest.raises(ValueError, match=r"steps 10, the set's is 8") as caught:
        parity_rows(run_bundle("smolvla_given"), read_reference(ORACLES / "smolvla_given_b"))
    assert "no camera observation.images.camera1" in str(caught.value)
