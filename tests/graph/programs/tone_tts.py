# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The speech node with a voice that hums: 10 ms a character, made at ten times the speed of speech.

Of what a real voice does it keeps what the node has to cope with: chunks, text in pieces, aborts from
another thread, refusals. `REFUSE` in a text is refused, `FAIL` fails, `CRASH` fails as no voice
should, `HANG` does not come back.
`STUCK_S` in the environment is how long the node bears that, seconds; `BUSY` burns as many threads of
Python beside it.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np

from omni_ros.nodes import _tts_parameters, tts
from omni_ros.speech import SpeechChunk, SpeechError, SpeechRefused, check_utterance

RATE = 22050
PER_CHARACTER = RATE // 100
#: Characters a chunk.
STEP = 20


class ToneVoice:
    name, sample_rate, frame_samples = "tone", RATE, PER_CHARACTER
    languages, speakers, rates = ("en",), (), (0.5, 2.0)

    def __init__(self) -> None:
        self._stopped = False

    def start(self, text, utterance, slack=None):
        check_utterance(self, utterance)
        if isinstance(text, str) and "REFUSE" in text:
            raise SpeechRefused("this voice does not say REFUSE; leave it out")
        self._stopped = False
        return self._hum([text] if isinstance(text, str) else text)

    def _hum(self, pieces):
        first = end = 0
        for piece in pieces:
            for begin in range(0, len(piece), STEP):
                if self._stopped:
                    return
                part = piece[begin:begin + STEP]
                if "FAIL" in part:
                    raise SpeechError("this voice fails at FAIL; mend it")
                if "CRASH" in part:
                    raise RuntimeError("a network of this voice is broken")
                while "HANG" in part:
                    time.sleep(0.1)
                count = len(part) * PER_CHARACTER
                time.sleep(0.1 * count / RATE)
                end += len(part)
                at = np.arange(first, first + count)
                samples = (0.3 * np.sin(2 * np.pi * 441 * at / RATE)).astype(np.float32)
                yield SpeechChunk(samples, first, end, part, {"hum": 0.1 * count / RATE})
                first += count
            if self._stopped:
                return
        yield SpeechChunk(np.zeros(0, np.float32), first, end, "", {}, True)

    def abort(self) -> None:
        self._stopped = True

    def close(self) -> None:
        pass


def burn() -> None:
    """Hold the interpreter as much as one thread can."""
    number = 1
    while True:
        number = number * 31 % 1000003


if __name__ == "__main__":
    _tts_parameters.open_voice = lambda bundle, *_, **__: ToneVoice()
    tts.STUCK_S = float(os.environ.get("STUCK_S", tts.STUCK_S))
    for _ in range(int(os.environ.get("BUSY", "0"))):
        threading.Thread(target=burn, daemon=True).start()
    sys.exit(tts.main())
