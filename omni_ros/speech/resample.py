# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From the voice's sample rate to the sound card's, piece by piece and without seams."""

from __future__ import annotations

import numpy as np

from omni_ros.requirements import require

#: soxr's quality. "LQ" is good for 16 bit and holds back 1 to 6 ms of a piece until the next one
#: comes; "MQ" and better hold back 30 ms, which a first piece of 70 ms cannot spare.
QUALITY = "LQ"
#: Rates that make sense, Hz.
LEAST_HZ, MOST_HZ = 1000.0, 768000.0


class Resampler:
    """Resamples one utterance. Equal rates are passed through."""

    def __init__(self, source_hz: float, target_hz: float) -> None:
        """
        :raises ValueError: a rate that is none.
        :raises MissingDependency: the rates differ and soxr is not installed.
        """
        for name, value in (("source", source_hz), ("target", target_hz)):
            if not LEAST_HZ <= value <= MOST_HZ:
                raise ValueError(f"{name} rate is {value:g} Hz; expected {LEAST_HZ:g} to {MOST_HZ:g}")
        self.ratio = target_hz / source_hz
        self._stream = None
        if source_hz != target_hz:
            soxr = require("soxr", "to play speech at the sound card's sample rate")
            self._stream = soxr.ResampleStream(
                source_hz, target_hz, 1, dtype="float32", quality=QUALITY)

    def push(self, samples: np.ndarray, *, last: bool = False) -> np.ndarray:
        """Return what is ready after one more piece; with `last` all that was held back too.

        :param samples: float32 [n].
        """
        if self._stream is None:
            return samples
        return self._stream.resample_chunk(np.ascontiguousarray(samples, np.float32), last=last)
