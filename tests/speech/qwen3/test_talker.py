# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The loops over talker and code predictor against what the reference made, greedily."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.speech.qwen3.errors import ContextFull
from omni_ros.speech.qwen3.feed import TextFeed
from omni_ros.speech.qwen3.frames import CodeRules, FrameMaker, Span
from omni_ros.speech.qwen3.sampling import Draw

FRAMES = 23


def feed_of(ids) -> TextFeed:
    """A text whose letters have these token ids."""
    feed = TextFeed("x" * len(ids), lambda text: [(int(id), at + 1) for at, id in enumerate(ids)],
                    span_tokens=1000)  # fmt: skip
    feed.begin_span()
    return feed


@pytest.fixture
def say(oracle, prompts, networks, predictor):
    """Say a case with a talker; return codes [frames, 16] and hidden states."""
    def run(talker, case: dict, *, whole: bool, frames: int = FRAMES):
        rules = CodeRules(2048, networks.config.codec_ids["eos"], 3072, Draw(), Draw())
        hidden, feed = [], talker.feed

        def recorded(rows):
            answer = feed(rows)
            hidden.append(answer[0].copy())
            return answer

        talker.feed = recorded
        maker = FrameMaker(talker, predictor, prompts, prompts._codec, rules)
        codes = []
        for frame in maker.say(feed_of(case["text_ids"]), Span(0), language="english", speaker="",
                               greedy=True, whole=whole):  # fmt: skip
            codes.append(frame.codes)
            if len(codes) == frames:
                break
        return np.stack(codes), np.stack(hidden[:frames])

    return run


@pytest.mark.parametrize("case", [0, 1])
@pytest.mark.parametrize("mode", ["nonstream", "stream"])
def test_greedy_codes_and_hidden_states_are_the_references(oracle, say, make_talker, case, mode):
    wanted = oracle.cases[case]
    codes, hidden = say(make_talker(64, 128), wanted, whole=mode == "nonstream")
    np.testing.assert_array_equal(codes, wanted[f"codes_{mode}"])
    assert np.abs(hidden - wanted[f"hidden_{mode}"]).max() <= 1e-5


def test_a_prompt_taken_one_position_at_a_time_gives_the_same(oracle, say, make_talker):
    wanted = oracle.cases[0]
    codes, hidden = say(make_talker(64, prefill=False), wanted, whole=True)
    np.testing.assert_array_equal(codes, wanted["codes_nonstream"])
    assert np.abs(hidden - wanted["hidden_nonstream"]).max() <= 1e-5


def test_a_context_that_grows_on_the_way_gives_the_same(oracle, say, make_talker):
    wanted = oracle.cases[0]
    codes, _ = say(make_talker(20, 33, 64), wanted, whole=True)
    np.testing.assert_array_equal(codes, wanted["codes_nonstream"])


def test_what_was_said_before_does_not_show(oracle, say, make_talker):
    used = make_talker(32, 64)
    say(used, oracle.cases[1], whole=True)
    again = say(used, oracle.cases[0], whole=False)
    fresh = say(make_talker(32, 64), oracle.cases[0], whole=False)
    for one, other in zip(again, fresh, strict=True):
        np.testing.assert_array_equal(one, other)


def test_positions_beyond_the_context_are_refused_and_nothing_is_taken(make_talker):
    talker = make_talker(16, 32)
    talker.feed(np.zeros((30, 128), np.float32))
    with pytest.raises(ContextFull, match="3 positions more after 30: the talker has 32"):
        talker.feed(np.zeros((3, 128), np.float32))
    assert talker.position == 30
    talker.feed(np.zeros((2, 128), np.float32))


def test_a_full_context_ends_speech_and_says_so(oracle, say, make_talker, caplog):
    codes, _ = say(make_talker(40), oracle.cases[0], whole=True, frames=100)
    assert len(codes) == 40 - 29 + 1
    assert "no more than 40 positions" in caplog.text


def test_a_talker_that_does_not_end_is_ended(oracle, say, make_talker, caplog):
    codes, _ = say(make_talker(512), oracle.cases[0], whole=True, frames=1000)
    assert len(codes) == 40 + 8 * 19
    assert "did not end its 19 text tokens" in caplog.text


def test_no_positions_are_refused(make_talker):
    with pytest.raises(ValueError, match="at least one"):
        make_talker().feed(np.zeros((0, 128), np.float32))
