# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from omni_ros.speech.qwen3 import voice as module
from omni_ros.speech.qwen3.errors import CodesError
from omni_ros.speech.qwen3.sampling import Draw
from omni_ros.speech.voice import SpeechError, SpeechRefused, Utterance

FRAME = 1920
PLAIN = Utterance(deterministic=True)


@pytest.fixture
def open_voice(make_parts, monkeypatch):
    """Open a voice of the tiny checkpoint with these options."""
    def make(contexts=(64, 128), **options):
        monkeypatch.setattr(module, "open_parts",
                            lambda folder, given, threads, cpus: make_parts(given, contexts))
        return module.QwenVoice(Path("tiny"), **options)

    return make


@pytest.fixture
def voice(open_voice):
    return open_voice(max_frames=12)


def samples(chunks) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in chunks])


def dry() -> float:
    """A listener who has nothing left: chunks are then always the smallest, whatever they take.

    Chunk sizes show in the last bits of samples, so what is compared bit by bit needs equal ones.
    """
    return 0.0


def text_of(case: dict) -> str:
    return "".join(map(chr, case["text_ids"]))


def test_a_text_sounds_as_in_the_reference(open_voice, oracle):
    voice = open_voice((256,), text="whole", max_frames=23)
    case = oracle.cases[0]
    voice._maker.rules = replace(voice._maker.rules, talker=Draw(repetition_penalty=1.0))
    made = samples(voice.start(text_of(case), Utterance("english", deterministic=True)))
    assert np.abs(made - case["pcm_nonstream"]).max() <= 1e-5


def test_chunks_follow_each_other_and_cover_the_text(voice):
    text = "Go on, please. I am here."
    chunks = list(voice.start(text, PLAIN))
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    ends = np.cumsum([len(chunk.samples) for chunk in chunks])
    assert [chunk.first_sample for chunk in chunks] == [0, *ends[:-1]]
    reached = [chunk.text_end for chunk in chunks]
    assert reached == sorted(reached) and reached[-1] == len(text)
    assert chunks[0].speaking == "Go on,"
    assert all(len(chunk.samples) % FRAME == 0 and chunk.samples.dtype == np.float32
               for chunk in chunks)


def test_each_chunk_says_what_its_stages_took(voice):
    chunks = list(voice.start("Go.", PLAIN))
    assert {"prompt", "predictor", "vocoder"} <= set(chunks[0].timings)
    assert {"talker", "predictor", "vocoder"} <= set(chunks[1].timings)


def test_the_first_chunk_is_one_frame(voice):
    assert len(next(voice.start("Go.", PLAIN)).samples) == FRAME


def test_the_same_seed_says_the_same_and_another_says_it_otherwise(voice):
    one, again, other = (samples(voice.start("Hello there.", Utterance(seed=seed), dry))
                         for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_pieces_sound_like_the_whole(voice):
    text = "Hello there you"
    whole = samples(voice.start(text, Utterance(seed=3), dry))
    pieces = samples(voice.start(iter(["Hel", "", "lo the", "re y", "ou"]), Utterance(seed=3), dry))
    np.testing.assert_array_equal(whole, pieces)


def test_speech_begins_before_the_text_has_ended(voice):
    asked = []

    def pieces():
        for piece in ("I am ", "still ", "thinking."):
            asked.append(piece)
            yield piece

    chunks = voice.start(pieces(), PLAIN)
    assert asked == []
    next(chunks)
    assert asked == ["I am "]
    assert list(chunks)[-1].last and len(asked) == 3


def test_a_whole_sentence_is_said_before_more_text_is_asked_for(voice):
    said = []

    def pieces():
        yield "Go."
        assert sum(said) == 12 * FRAME
        yield " Stop."

    for chunk in voice.start(pieces(), PLAIN):
        said.append(len(chunk.samples))
    assert sum(said) == 24 * FRAME


def test_a_text_longer_than_a_context_is_said_in_several(open_voice):
    voice = open_voice(contexts=(64,), max_frames=5)
    said = samples(voice.start("word word word word word", PLAIN))
    most = voice._span_tokens(Utterance("english"))
    assert 5 < most < 24 and len(said) > 5 * FRAME


# -- refusing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  ", "...!", "-- ,"])
def test_a_text_without_a_word_is_refused_at_the_call(voice, text):
    with pytest.raises(SpeechRefused, match="nothing in it that can be spoken"):
        voice.start(text, PLAIN)
    assert list(voice.start("Go.", PLAIN))


def test_pieces_without_a_word_are_refused_by_the_iterator(voice):
    with pytest.raises(SpeechRefused, match="nothing in it"):
        list(voice.start(["", " "], PLAIN))


@pytest.mark.parametrize("utterance, reason", [
    (Utterance(language="klingon"), "auto, english"), (Utterance(speaker="bob"), "robo"),
    (Utterance(rate=1.5), "1 to 1"), (Utterance(seed=-1), "seed"),
])  # fmt: skip
def test_what_the_voice_has_not_is_refused_at_the_call(voice, utterance, reason):
    with pytest.raises(SpeechRefused, match=reason):
        voice.start("Go.", utterance)


def test_a_second_utterance_gives_up_one_that_was_left_half_said(voice):
    first = voice.start("Go.", PLAIN)
    next(first)
    assert list(voice.start("Stop.", PLAIN))[-1].last
    assert list(first) == []


def test_a_second_utterance_is_refused_while_a_thread_works_on_the_first(voice):
    refused = []

    def pieces():
        with pytest.raises(SpeechError, match="saying something else"):
            voice.start("Stop.", PLAIN)
        refused.append(True)
        yield "Go."

    assert list(voice.start(pieces(), PLAIN)) and refused


def test_an_iterator_that_nobody_wants_gives_the_voice_back(voice):
    voice.start("Go.", PLAIN)
    assert list(voice.start("Stop.", PLAIN))


def test_a_text_that_fails_is_said_up_to_there_and_the_failure_follows(voice):
    def pieces():
        yield "I am here "
        raise OSError("the line is dead")

    chunks = voice.start(pieces(), PLAIN)
    said = []
    with pytest.raises(OSError, match="line is dead"):
        for chunk in chunks:
            said.append(chunk)
    assert len(said) > 2 and not said[-1].last
    assert list(voice.start("Go.", PLAIN))


def test_a_closed_voice_is_refused_and_may_be_closed_again(voice):
    voice.close()
    voice.close()
    with pytest.raises(SpeechError, match="closed"):
        voice.start("Go.", PLAIN)


def test_an_unknown_option_is_refused_with_those_there_are(open_voice):
    with pytest.raises(ValueError, match="expected one of talker, gguf"):
        open_voice(colour="red")
    with pytest.raises(ValueError, match="executorch, llama.cpp"):
        open_voice(talker="torch")
    with pytest.raises(ValueError, match="max_frames is 'many'; expected a whole number"):
        open_voice(max_frames="many")
    for name, least in (("max_frames", 0), ("chunk_frames", 1), ("left_context_frames", 0)):
        with pytest.raises(ValueError, match=f"{name} is -1; expected at least {least}"):
            open_voice(**{name: "-1"})


def test_names_may_be_written_as_on_model_cards(voice):
    assert list(voice.start("Go.", Utterance("English", "Robo", deterministic=True)))


# -- stopping ------------------------------------------------------------------------------------


def test_an_abort_at_any_step_leaves_no_trace(voice, networks):
    """Every program of the voice is a point where the abort may come from another thread."""
    utterance = Utterance(seed=5)
    wanted = samples(voice.start("Hello there.", utterance, dry))
    parts = voice._parts
    programs = [parts.talker._contexts[0].step, parts.talker._contexts[0].prefill,
                parts.predictor._first, parts.predictor._step, parts.predictor._heads[7],
                *(size.program for size in parts.vocoder._sizes)]  # fmt: skip
    for program in programs:
        for turn in (1, 3):
            left = turn
            run = program.run

            def stopping(run=run) -> float:
                nonlocal left
                left -= 1
                if left == 0:
                    voice.abort()
                return run()

            program.run = stopping
            stopped = list(voice.start("Something else, quite long.", Utterance(seed=6)))
            program.run = run
            if left <= 0:
                assert not any(chunk.last for chunk in stopped)
            np.testing.assert_array_equal(samples(voice.start("Hello there.", utterance, dry)), wanted)


def test_an_abort_ends_within_a_frames_work(voice):
    chunks = voice.start("Hello there.", PLAIN)
    next(chunks)
    steps = voice._parts.predictor._step
    before = steps.runs
    voice.abort()
    assert list(chunks) == []
    assert steps.runs - before <= 14


def test_an_abort_while_text_is_waited_for_ends_the_utterance(voice):
    def pieces():
        yield "I am "
        for number in range(1000):
            if number == 5:
                voice.abort()
            yield ""
        raise AssertionError("still waiting")

    assert not any(chunk.last for chunk in voice.start(pieces(), PLAIN))
    assert list(voice.start("Go.", PLAIN))[-1].last


def test_an_abort_while_nothing_is_said_changes_nothing(voice):
    wanted = samples(voice.start("Go.", PLAIN, dry))
    voice.abort()
    np.testing.assert_array_equal(samples(voice.start("Go.", PLAIN, dry)), wanted)


# -- chunks and pace -----------------------------------------------------------------------------


def sizes(chunks) -> list[int]:
    return [len(chunk.samples) // FRAME for chunk in chunks]


def test_windows_come_in_vllm_omnis_chunks(open_voice):
    voice = open_voice(vocoder="windows", max_frames=60)
    assert sizes(voice.start("Hello there.", PLAIN)) == [1, 25, 25, 9]


def test_windows_follow_a_ramp(open_voice):
    voice = open_voice(vocoder="windows", ramp="2,4,25", max_frames=40)
    assert sizes(voice.start("Hello there.", PLAIN)) == [2, 4, 25, 9]


def test_chunks_grow_while_the_listener_has_enough_and_stay_small_while_not(voice):
    hungry = sizes(voice.start("Hello there.", PLAIN, dry))
    full = sizes(voice.start("Hello there.", PLAIN, lambda: 100.0))
    assert set(hungry[:-1]) == {1} and full == [4, 4, 4, 0]


def slow(voice, factor: float) -> None:
    """Make the voice believe that its machine takes this many times too long."""
    voice.pace.per_frame = {"talker": 0.02 * factor, "predictor": 0.05 * factor,
                            "vocoder": 0.01 * factor}
    voice.pace.add = lambda *arguments: None


def test_a_machine_that_cannot_keep_up_is_said_with_numbers_before_it_speaks(voice, caplog):
    slow(voice, 2.0)
    chunks = voice.start("Hello there.", PLAIN)
    next(chunks)
    assert "takes 160 ms for a frame of 80 ms (talker 40, predictor 100, vocoder 20)" in caplog.text
    assert "gaps, some 50% of the time" in caplog.text
    assert voice.verdict in caplog.text


def test_a_machine_that_keeps_up_says_nothing(voice, caplog):
    slow(voice, 0.5)
    list(voice.start("Hello there.", PLAIN))
    assert "machine" not in caplog.text


def test_buffering_first_makes_as_much_as_playback_will_lack(open_voice):
    voice = open_voice(buffer_first=True, text="whole", max_frames=40)
    slow(voice, 2.0)
    assert sizes(voice.start("Hello you.", PLAIN))[0] == round(10 * 3.6) // 2


def test_codes_made_elsewhere_are_voiced(voice, oracle):
    case = oracle.cases[0]
    flat = case["vocoder_codes"][:, :40].reshape(-1).astype(np.int64)
    made = samples(voice.voice_codes(flat))
    assert np.abs(made - case["vocoder_pcm"][: 40 * FRAME]).max() <= 1e-5


def test_codes_made_elsewhere_are_voiced_in_windows_where_those_are_asked_for(open_voice, oracle):
    case = oracle.cases[0]
    codes = case["vocoder_codes"].T.astype(np.int64)
    made = samples(open_voice(vocoder="windows").voice_codes(codes))
    assert made.shape == case["vocoder_pcm"].shape
    exact = (1 + 3 * 25) * FRAME
    assert np.abs(made - case["vocoder_pcm"])[:exact].max() <= 1e-5
    assert np.abs(made - case["vocoder_pcm"])[exact:].max() > 1e-5


@pytest.mark.parametrize("codes", [np.array(3), np.zeros((1, 16, 1), int), [[1] * 15], [0.5] * 16])
def test_what_is_no_codes_is_refused_with_what_was_expected(voice, codes):
    with pytest.raises(CodesError, match="expected"):
        list(voice.voice_codes(codes))


def test_no_codes_are_no_chunks(voice):
    assert list(voice.voice_codes(np.empty(0, np.int64))) == []


def test_a_piece_that_is_no_text_is_an_error(voice):
    with pytest.raises(TypeError, match="expected a str"):
        list(voice.start(["Go ", 3], PLAIN))
