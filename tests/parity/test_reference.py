# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a reference set."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from omni_ros.parity.reference import (
    cross_projections, read_reference, read_tensor, state_deviation,
)

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"
GIVEN = ORACLES / "smolvla_given"
WEIGHTS = GIVEN / "checkpoint" / "model.safetensors"


def test_a_set_holds_one_observation_and_what_became_of_it():
    reference = read_reference(GIVEN)
    assert reference.task.startswith("pick up")
    assert reference.noise.shape == (50, 32)


def test_a_folder_that_is_no_set_is_refused_with_the_file(tmp_path):
    with pytest.raises(ValueError, match="inputs.npz is not there: expected a reference set"):
        read_reference(tmp_path)


def test_a_damaged_file_is_named(tmp_path):
    folder = Path(shutil.copytree(GIVEN, tmp_path / "set"))
    (folder / "tensors" / "steps.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(ValueError, match="steps.npz"):
        read_reference(folder)


def test_a_set_without_real_time_chunking_is_one_too(tmp_path):
    folder = Path(shutil.copytree(GIVEN, tmp_path / "set"))
    (folder / "tensors" / "rtc.npz").unlink()
    assert read_reference(folder).rtc == {}


def test_a_tensor_is_read_as_safetensors_reads_it():
    load_file = pytest.importorskip("safetensors.numpy").load_file
    for name, values in list(load_file(WEIGHTS).items())[:5]:
        assert np.array_equal(read_tensor(WEIGHTS, name), values.astype(np.float32))


def test_bfloat16_is_widened(tmp_path):
    header = b'{"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}'
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\x80\x3f\x00\xc0")
    assert read_tensor(path, "x").tolist() == [1.0, -2.0]


def test_a_tensor_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="has no model.nothing"):
        read_tensor(WEIGHTS, "model.nothing")


def test_the_states_deviations_are_read_beside_its_quantiles(tmp_path):
    """A π0.5 normalises by quantiles, and its state was changed by deviations all the same."""
    np.testing.assert_allclose(state_deviation(ORACLES / "pi05_given"), [
        2.52, 1.49, 1.09, 1.72, 1.88, 2.76, 1.34, 1.74], atol=0.006)
    assert state_deviation(tmp_path) is None


def test_every_second_layer_has_projections():
    found = cross_projections(GIVEN, 4)
    assert list(found) == [1, 3]
    assert all(weights.shape == (32, 32) for pair in found.values() for weights in pair)
