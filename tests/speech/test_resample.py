# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From the voice's sample rate to the sound card's."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.speech.resample import Resampler

pytest.importorskip("soxr")


def tone(rate: float, seconds: float) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * 441 * np.arange(round(rate * seconds)) / rate)).astype(np.float32)


@pytest.mark.parametrize("target", [16000, 44100, 48000])
@pytest.mark.parametrize("step", [1, 160, 4000])
def test_pieces_of_any_size_become_the_same_tone_without_a_seam(target, step):
    resampler, source = Resampler(22050, target), tone(22050, 0.5)
    pieces = [resampler.push(source[i:i + step]) for i in range(0, len(source), step)]
    out = np.concatenate([*pieces, resampler.push(source[:0], last=True)])
    assert len(out) == pytest.approx(0.5 * target, abs=2)
    middle = slice(target // 20, -target // 20)
    assert np.abs(out - tone(target, 0.5)[:len(out)])[middle].max() < 1e-3


def test_little_of_a_piece_is_held_back():
    out = Resampler(22050, 48000).push(tone(22050, 0.07))
    assert len(out) / 48000 > 0.06


def test_equal_rates_pass_through():
    source = tone(22050, 0.1)
    assert Resampler(22050, 22050).push(source) is source


@pytest.mark.parametrize("rate", [0, -1, float("nan"), 1e9])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError, match="expected 1000 to"):
        Resampler(22050, rate)
