# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Speech beside a thread of Python that never rests, in the same process."""

from __future__ import annotations

import time

#: 10 s of humming.
TEN_SECONDS = "ten seconds of hum, " * 50


def test_a_busy_python_thread_costs_no_sample(own_speech, microphone, gap_free, monkeypatch):
    monkeypatch.setenv("BUSY", "1")
    # A buffer of 0.2 s is for machines that others share; in the busy process it would not be enough.
    speech = own_speech.start(device_latency=0.2, ahead_s=15.0)
    began = time.monotonic()
    state, result = speech.goal(TEN_SECONDS, utterance_id="busy").end(60.0)
    assert state == "succeeded"
    time.sleep(0.4)
    assert microphone.gaps_ms(began) == []
    status = speech.idle()
    assert (status.underruns, status.device_underruns) == (0, 0)
    gap_free(speech.pieces("busy"))
