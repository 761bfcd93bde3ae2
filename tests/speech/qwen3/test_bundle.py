# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The exported programs themselves, and the talker in llama.cpp, against the reference."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from omni_ros.speech import open_voice
from omni_ros.speech.qwen3.errors import ContextFull, TalkerError
from omni_ros.speech.qwen3.feed import TextFeed
from omni_ros.speech.qwen3.frames import Span
from omni_ros.speech.qwen3.talker_llama import LlamaTalker
from omni_ros.speech.voice import Utterance

FRAMES = 23


def opened(bundle, **options):
    return open_voice(bundle, options={"max_frames": FRAMES, **options})


@pytest.fixture(scope="module")
def voices(bundle):
    """The voice with its talker in ExecuTorch and in llama.cpp, opened when asked for."""
    made = {}

    def get(talker: str = "executorch"):
        if talker == "llama.cpp":
            pytest.importorskip("llama_cpp")
        if talker not in made:
            made[talker] = opened(bundle, talker=talker)
            rules = made[talker]._maker.rules
            made[talker]._maker.rules = dataclasses.replace(
                rules, talker=dataclasses.replace(rules.talker, repetition_penalty=1.0))
        return made[talker]

    yield get
    for voice in made.values():
        voice.close()


@pytest.fixture(params=["executorch", "llama.cpp"])
def voice(voices, request):
    return voices(request.param)


def said(voice, case: dict, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes [frames, 16] and hidden states of a case, greedily."""
    ids = case["text_ids"]
    feed = TextFeed("x" * len(ids), lambda text: [(int(id), at + 1) for at, id in enumerate(ids)],
                    span_tokens=1000)  # fmt: skip
    feed.begin_span()
    talker, hidden = voice._maker.talker, []
    plain = talker.feed

    def recorded(rows):
        answer = plain(rows)
        hidden.append(answer[0].copy())
        return answer

    talker.feed = recorded
    try:
        frames = [frame.codes for frame in voice._maker.say(
            feed, Span(0), language="english", speaker="", greedy=True,
            whole=mode == "nonstream")]  # fmt: skip
    finally:
        talker.feed = plain
    return np.stack(frames), np.stack(hidden[: len(frames)])


@pytest.mark.parametrize("mode", ["nonstream", "stream"])
def test_codes_and_hidden_states_are_the_references(voice, oracle, mode):
    for case in oracle.cases:
        codes, hidden = said(voice, case, mode)
        np.testing.assert_array_equal(codes, case[f"codes_{mode}"])
        assert np.abs(hidden - case[f"hidden_{mode}"]).max() <= 1e-5


def test_what_was_said_before_does_not_show(voice, oracle):
    fresh = said(voice, oracle.cases[0], "stream")
    said(voice, oracle.cases[1], "nonstream")
    for one, other in zip(said(voice, oracle.cases[0], "stream"), fresh, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("sizes", [[1, 25, 25, 25, 25, 25, 25, 25], [4] * 42, [1] * 168,
                                   [7, 1, 40, 168]],
                         ids=["1 then 25", "all 4", "all 1", "7, 1, 40, rest"])
def test_samples_are_the_references_for_any_chunking(voices, oracle, sizes):
    vocoder = voices()._parts.vocoder
    for case in oracle.cases:
        codes = case["vocoder_codes"].T.astype(np.int64)
        at, parts = 0, []
        vocoder.start()
        for size in sizes:
            parts.append(vocoder.decode(codes[at : at + size]))
            at += size
        made = np.concatenate([*parts, vocoder.decode(codes[at:])])
        assert np.abs(made - case["vocoder_pcm"]).max() <= 1e-5


def test_the_next_utterance_after_an_abort_is_the_one_of_a_fresh_start(bundle, voices):
    utterance = Utterance("english", "robo", seed=3)
    with opened(bundle) as fresh:
        wanted = [chunk.samples for chunk in fresh.start("Hello there.", utterance, lambda: 0.0)]
    voice = voices()
    voice._maker.rules = fresh._maker.rules
    for count in (1, 4, 9):
        chunks = voice.start("Something else.", Utterance(seed=8), lambda: 0.0)
        for _ in range(count):
            next(chunks)
        voice.abort()
        assert list(chunks) == []
        made = [chunk.samples for chunk in voice.start("Hello there.", utterance, lambda: 0.0)]
        np.testing.assert_array_equal(np.concatenate(made), np.concatenate(wanted))


# -- llama.cpp -----------------------------------------------------------------------------------


@pytest.fixture
def make_llama(bundle):
    pytest.importorskip("llama_cpp")
    made = []

    def make(**changes) -> LlamaTalker:
        options = dict(width=128, codes=3072, limit=64, threads=1, exact_cache=True)
        made.append(LlamaTalker(bundle / "talker.f32.gguf", **(options | changes)))
        return made[-1]

    yield make
    for talker in made:
        talker.close()


def test_llama_positions_beyond_the_context_are_refused_and_nothing_is_taken(make_llama):
    talker = make_llama(limit=256)
    talker.feed(np.zeros((250, 128), np.float32))
    with pytest.raises(ContextFull, match="7 positions more after 250: the talker has 256"):
        talker.feed(np.zeros((7, 128), np.float32))
    assert talker.position == 250
    talker.feed(np.zeros((6, 128), np.float32))


def test_a_gguf_file_of_another_size_is_refused_with_both(make_llama):
    with pytest.raises(TalkerError, match="is 128 wide, the bundle's talker 256"):
        make_llama(width=256)
    with pytest.raises(TalkerError, match="expected 999999 or more"):
        make_llama(codes=999_999)


def test_what_is_no_gguf_file_is_refused(tmp_path):
    pytest.importorskip("llama_cpp")
    broken = tmp_path / "talker.gguf"
    for content in (None, b"", b"GGUF" + bytes(100)):
        if content is not None:
            broken.write_bytes(content)
        with pytest.raises(TalkerError, match="is not there|does not load"):
            LlamaTalker(broken, width=128, codes=3072, limit=64, threads=1)


def test_a_gguf_file_that_the_bundle_does_not_have_is_named_with_those_it_has(bundle):
    pytest.importorskip("llama_cpp")
    with pytest.raises(TalkerError, match="no GGUF file 'q9'; it has: f32"):
        opened(bundle, talker="llama.cpp", gguf="q9")
