# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Codes to samples, against the reference's decode of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.speech.qwen3.compat import CompatSchedule
from omni_ros.speech.qwen3.errors import CodesError
from omni_ros.speech.qwen3.vocoder import WindowVocoder
from omni_ros.speech.qwen3.wire import from_wire, to_wire

FRAME = 1920


def chunked(vocoder, codes: np.ndarray, sizes) -> np.ndarray:
    vocoder.start()
    parts, at = [], 0
    for size in sizes:
        parts.append(vocoder.decode(codes[at : at + size]))
        at += size
        if at >= len(codes):
            break
    else:
        parts.append(vocoder.decode(codes[at:]))
    return np.concatenate(parts)


@pytest.fixture(params=[0, 1])
def case(oracle, request) -> tuple[np.ndarray, np.ndarray]:
    wanted = oracle.cases[request.param]
    return wanted["vocoder_codes"].T.astype(np.int64), wanted["vocoder_pcm"]


@pytest.mark.parametrize("sizes", [
    pytest.param([1, *[25] * 7], id="1 then 25"), pytest.param([4] * 42, id="all 4"),
    pytest.param([1] * 168, id="all 1"), pytest.param([7, 1, 40, 168], id="7, 1, 40, rest"),
    pytest.param(list(np.random.default_rng(3).integers(1, 31, 40)), id="random"),
])  # fmt: skip
def test_any_chunking_gives_the_decode_of_the_whole(vocoder, case, sizes):
    codes, pcm = case
    made = chunked(vocoder, codes, sizes)
    assert made.dtype == np.float32 and made.shape == pcm.shape
    assert np.abs(made - pcm).max() <= 1e-5


def test_codes_of_the_talker_sound_as_in_the_reference(oracle, vocoder):
    for wanted in oracle.cases:
        codes = wanted["codes_nonstream"].astype(np.int64)
        assert np.abs(vocoder.decode(codes) - wanted["pcm_nonstream"]).max() <= 1e-5
        vocoder.start()


def test_the_utterance_before_leaves_no_trace(vocoder, case):
    codes, _ = case
    fresh = vocoder.decode(codes[:11])
    vocoder.decode(codes[11:40])
    vocoder.start()
    np.testing.assert_array_equal(vocoder.decode(codes[:11]), fresh)


def test_no_frames_are_no_samples(vocoder):
    assert vocoder.decode(np.empty((0, 16), np.int64)).shape == (0,)


@pytest.mark.parametrize("codes, reason", [
    (np.full((2, 16), 2048), "2048"), (np.full((2, 16), -1), "codes from -1"),
    (np.zeros((2, 15), int), r"\[2, 15\]"), (np.zeros((2, 16)), "float64"),
])  # fmt: skip
def test_codes_that_are_none_are_refused_and_the_state_stays(vocoder, oracle, codes, reason):
    good = oracle.cases[0]["vocoder_codes"].T.astype(np.int64)
    wanted = chunked(vocoder, good[:6], [3, 3])
    vocoder.start()
    first = vocoder.decode(good[:3])
    with pytest.raises(CodesError, match=reason):
        vocoder.decode(codes)
    np.testing.assert_array_equal(np.concatenate([first, vocoder.decode(good[3:6])]), wanted)


def test_samples_are_not_written_to_again(vocoder, case):
    codes, _ = case
    first = vocoder.decode(codes[:4])
    kept = first.copy()
    vocoder.decode(codes[4:8])
    np.testing.assert_array_equal(first, kept)


# -- windows -------------------------------------------------------------------------------------


def windows(vocoder, codes: np.ndarray, **options) -> np.ndarray:
    """Voice codes with vLLM-Omni's default chunks."""
    schedule, parts, sent = CompatSchedule(**options), [], 0
    for made in range(1, len(codes) + 1):
        emission = schedule.step(made)
        if emission:
            parts.append(vocoder.decode(codes[sent : sent + emission.frames]))
            sent += emission.frames
    parts.append(vocoder.decode(codes[sent:]))
    return np.concatenate(parts)


@pytest.fixture
def long_case(oracle) -> tuple[np.ndarray, np.ndarray]:
    """Frames for one more chunk than history has room for, and their samples."""
    frames = 1 + 5 * 25
    wanted = oracle.cases[0]
    codes = wanted["vocoder_codes"][:, :frames].T.astype(np.int64)
    return codes, wanted["vocoder_pcm"][: frames * FRAME]


def test_a_window_is_the_decode_of_its_frames_less_the_history(vocoder, long_case):
    codes, _ = long_case
    made = windows(WindowVocoder(vocoder), codes)
    start = 1 + 4 * 25  # a chunk whose history is longer than a window
    vocoder.start()
    wanted = vocoder.decode(codes[start - 72 : start + 25])[72 * FRAME :]
    assert np.abs(made[start * FRAME : (start + 25) * FRAME] - wanted).max() <= 1e-6


def test_windows_are_the_whole_decode_while_history_fits_and_not_any_more_after(vocoder, long_case):
    codes, pcm = long_case
    made = windows(WindowVocoder(vocoder), codes)
    assert made.shape == pcm.shape
    exact = (1 + 3 * 25) * FRAME  # chunks that have all history in their window
    assert np.abs(made[:exact] - pcm[:exact]).max() <= 1e-5
    assert np.abs(made[exact:] - pcm[exact:]).max() > 1e-5


def test_less_left_context_is_further_from_the_whole(vocoder, long_case):
    codes, pcm = long_case
    away = [np.abs(windows(WindowVocoder(vocoder, left), codes) - pcm).max() for left in (0, 72)]
    assert away[0] > away[1]


def test_codes_that_came_codebook_by_codebook_can_be_voiced(vocoder, long_case):
    codes, pcm = long_case
    arrived = from_wire(to_wire(codes), 16)
    assert np.abs(vocoder.decode(arrived) - pcm).max() <= 1e-5
