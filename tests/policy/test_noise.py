# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Noise is a function of seed and stamp, the same everywhere, and normal."""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist

import numpy as np
import pytest

from omni_ros.policy.noise import _log, _normal, fill_noise, noise

STAMP = 1_700_000_000 * 10**9 + 123
PINNED = [
    "-0x1.88a0560000000p-1",
    "0x1.5a24020000000p-2",
    "0x1.5abba80000000p+0",
    "0x1.08b2bc0000000p-2",
]
DIGEST = "0f83571ce94b3239e00a34c8cba6f6eb5778a1634974ee168b296558084273ec"


def test_the_values_are_pinned():
    values = noise((50, 32), seed=7, stamp_ns=STAMP)
    assert values.dtype == np.float32
    assert [float(v).hex() for v in values[0, :4]] == PINNED
    assert hashlib.sha256(values.astype("<f4").tobytes()).hexdigest() == DIGEST


@pytest.mark.parametrize("other", [{"seed": 8}, {"stamp_ns": STAMP + 1}])
def test_another_seed_or_stamp_gives_unrelated_noise(other):
    first = noise((50, 32), seed=7, stamp_ns=STAMP)
    second = noise((50, 32), **{"seed": 7, "stamp_ns": STAMP, **other})
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.1


def test_order_and_history_do_not_matter():
    wanted = noise((5, 4), seed=1, stamp_ns=2)
    noise((100,), seed=1, stamp_ns=3)
    np.testing.assert_array_equal(noise((5, 4), seed=1, stamp_ns=2), wanted)


def test_a_longer_chunk_begins_with_the_shorter_one():
    np.testing.assert_array_equal(noise((9, 4), seed=1, stamp_ns=2)[:5],
                                  noise((5, 4), seed=1, stamp_ns=2))


def test_a_given_buffer_is_filled():
    out = np.empty((3, 2), np.float32)
    assert fill_noise(out, seed=0, stamp_ns=0) is out
    np.testing.assert_array_equal(out, noise((3, 2), seed=0, stamp_ns=0))


def test_the_distribution_is_standard_normal():
    sample = np.sort(noise((200_000,), seed=3, stamp_ns=4).astype(np.float64))
    share = (np.arange(len(sample)) + 0.5) / len(sample)
    normal = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in sample])
    assert np.abs(normal - share).max() < 1.63 / math.sqrt(len(sample))  # Kolmogorov, 1 %


def test_the_quantile_function_is_right_into_both_tails():
    bits = np.random.default_rng(0).integers(0, 2**64, 3000, dtype=np.uint64)
    bits[:6] = [0, 2**64 - 1, 2**12, 2**20, 2**40, 2**63]
    exact = NormalDist()
    wanted = [exact.inv_cdf((int(b >> np.uint64(12)) + 0.5) / 2**52) for b in bits]
    np.testing.assert_allclose(_normal(bits), wanted, rtol=1e-14)


def test_the_logarithm_is_right_to_the_last_bits():
    x = np.concatenate([np.geomspace(2.0**-53, 0.5, 5000), np.linspace(0.05, 0.1, 1000)])
    np.testing.assert_allclose(_log(x), np.log(x), rtol=5e-16)


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 2**64}, {"stamp_ns": -1},
                                   {"stamp_ns": 2**63}])
def test_a_number_out_of_range_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        noise((2,), **{"seed": 0, "stamp_ns": 0, **wrong})


def test_another_dtype_is_refused():
    with pytest.raises(ValueError, match="float64; expected float32"):
        fill_noise(np.empty(3), seed=0, stamp_ns=0)
