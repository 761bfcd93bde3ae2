# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The ring between the speaker and the sound callback."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_ros.speech.ring import SampleRing


def numbers(begin: int, count: int) -> np.ndarray:
    return np.arange(begin, begin + count, dtype=np.float32)


def take(ring: SampleRing, count: int) -> tuple[int, np.ndarray]:
    out = np.full(count, -1.0, np.float32)
    return ring.fill(out), out


def test_what_is_written_comes_out_and_silence_behind_it():
    ring = SampleRing(8)
    assert ring.write(numbers(1, 3)) == 3
    taken, out = take(ring, 5)
    assert taken == 3 and out.tolist() == [1, 2, 3, 0, 0]


def test_what_does_not_fit_is_not_taken():
    ring = SampleRing(4)
    assert ring.write(numbers(0, 6)) == 4
    assert ring.room == 0 and ring.waiting == 4


def test_a_clear_drops_what_waits_and_nothing_that_comes_later():
    ring = SampleRing(8)
    ring.write(numbers(1, 5))
    ring.clear()
    assert ring.waiting == 0
    ring.write(numbers(100, 2))
    taken, out = take(ring, 4)
    assert taken == 2 and out.tolist() == [100, 101, 0, 0]


def test_a_ring_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        SampleRing(0)


@given(st.integers(1, 17), st.lists(st.tuples(st.sampled_from("wrc"), st.integers(0, 20))))
def test_samples_come_out_once_and_in_order(capacity, steps):
    ring, written, got, expected = SampleRing(capacity), 0, [], []
    for what, count in steps:
        if what == "w":
            done = ring.write(numbers(written, count))
            expected += range(written, written + done)
            written += done
        elif what == "r":
            taken, out = take(ring, count)
            got += out[:taken].tolist()
            assert not out[taken:].any()
        else:
            ring.clear()
            expected = list(got)
    taken, out = take(ring, capacity)
    assert got + out[:taken].tolist() == expected
