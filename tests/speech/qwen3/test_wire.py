# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from omni_ros.speech.qwen3.errors import CodesError
from omni_ros.speech.qwen3.wire import from_wire, to_wire, valid_frames


def test_code_q_of_frame_f_lies_at_q_times_frames_plus_f():
    codes = np.arange(3 * 16).reshape(3, 16)
    flat = to_wire(codes)
    assert flat.dtype == np.int64 and flat.shape == (48,)
    assert all(flat[q * 3 + f] == codes[f, q] for q in range(16) for f in range(3))


def test_what_was_sent_comes_back():
    codes = np.random.default_rng(0).integers(0, 2048, (7, 16))
    np.testing.assert_array_equal(from_wire(to_wire(codes), 16), codes)


def test_no_frames_travel_as_an_empty_row():
    assert from_wire(to_wire(np.empty((0, 16), int)), 16).shape == (0, 16)


def test_a_row_of_incomplete_frames_is_refused():
    with pytest.raises(CodesError, match="47 codes: no multiple of the 16"):
        from_wire(np.zeros(47, int), 16)


def test_a_row_of_floats_is_refused():
    with pytest.raises(CodesError, match="row of integers"):
        from_wire(np.zeros(16), 16)


def test_frames_with_impossible_codes_are_left_out():
    codes = np.ones((5, 16), int)
    codes[1, 3] = 2048
    codes[2, 0] = -1
    codes[3] = 0
    assert len(valid_frames(codes, 2048)) == 2
