# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a few bytes about a tensor can tell."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from omni_ros.replay.fingerprints import SUMS, fill_fingerprint, fingerprint, read_fingerprint

#: Of the tensor in the test below, as the first version made them.
DIGEST = 13629292326771151225
SKETCH = (
    219711.984, -197426.281, 42408.004, -52595.707, 219456.0, -135325.734, -301977.125,
    81412.844, -50532.578, -87806.0, -13920.576, -296260.844, -162742.859, 136393.719,
    -25466.287, -181216.859,
)


def _values(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def test_equal_tensors_have_equal_fingerprints_and_no_distance():
    one, two = fingerprint("x", _values(1000)), fingerprint("y", _values(1000))
    assert one.same(two) and one.distance(two) == 0.0


def test_one_bit_changes_the_digest():
    values = _values(50_000)
    other = values.copy()
    other.view(np.uint32)[31_337] ^= 1
    assert not fingerprint("x", values).same(fingerprint("x", other))


@pytest.mark.parametrize("count", [1, 15, 200, 16_384, 16_385, 300_001])
def test_the_distance_is_about_the_root_mean_square_of_the_difference(count):
    values, step = _values(count), 1e-3 * _values(count, seed=1)
    found = fingerprint("x", values).distance(fingerprint("x", values + step))
    expected = math.sqrt(float(np.mean(np.square(step, dtype=np.float64))))
    assert expected / 2.5 < found < expected * 2.5


def test_a_difference_that_is_the_same_everywhere_does_not_cancel():
    values = _values(100_000)
    found = fingerprint("x", values).distance(fingerprint("x", values + np.float32(0.25)))
    assert 0.1 < found < 0.6


def test_two_tensors_taken_as_one_are_told_from_the_same_two_changed_over():
    one, two = _values(400), _values(400, seed=1)
    there, back = fingerprint("prefix", one, two), fingerprint("prefix", two, one)
    assert not there.same(back)
    assert there.distance(back) > 0.5


def test_shape_and_type_belong_to_the_digest():
    values = _values(64)
    assert not fingerprint("x", values).same(fingerprint("x", values.reshape(8, 8)))
    assert not fingerprint("x", values).same(fingerprint("x", values.view(np.int32)))


def test_tensors_of_other_sizes_and_values_that_are_not_finite_are_infinitely_far():
    values = _values(64)
    broken = values.copy()
    broken[3] = np.nan
    assert fingerprint("x", values).distance(fingerprint("x", values[:63])) == math.inf
    assert fingerprint("x", values).distance(fingerprint("x", broken)) == math.inf


def test_an_empty_tensor_has_a_fingerprint():
    assert fingerprint("x", np.zeros(0, np.float32)).scale == 0.0


def test_sketch_and_digest_stay_what_recordings_hold():
    """A change of either makes every bag that was recorded before useless."""
    found = fingerprint("x", np.arange(40_000, dtype=np.float32) / np.float32(7.0))
    assert found.digest == DIGEST
    np.testing.assert_allclose(found.sketch, SKETCH, atol=0.5)


def test_a_fingerprint_survives_its_message():
    found = fingerprint("prefix", _values(999))
    message = fill_fingerprint(SimpleNamespace(), found)
    read = read_fingerprint(message)
    assert read.name == "prefix" and read.same(found) and read.distance(found) == 0.0
    assert read.scale == pytest.approx(1.0, abs=0.1)


def test_a_sketch_of_another_length_is_refused():
    message = fill_fingerprint(SimpleNamespace(), fingerprint("x", _values(9)))
    message.sketch = message.sketch[:3]
    with pytest.raises(ValueError, match=f"3 sums; expected {SUMS}"):
        read_fingerprint(message)
