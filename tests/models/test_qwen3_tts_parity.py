# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Our Qwen3-TTS modules against what the reference computed from the same checkpoint."""

from __future__ import annotations

from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from omni_ros.models.qwen3_tts import generate, load  # noqa: E402

ORACLE = Path(__file__).resolve().parents[1] / "data" / "oracles" / "qwen3_tts_given"
CASES = sorted(path.stem for path in ORACLE.glob("case*.npz"))
LIMIT = 1e-5
#: Of the reference's run: code 0 may be the end only after these frames.
MIN_FRAMES = 2


@pytest.fixture(scope="module")
def network() -> SimpleNamespace:
    torch.set_num_threads(1)
    checkpoint = load.load_checkpoint(ORACLE / "checkpoint")
    return SimpleNamespace(
        config=checkpoint.config, talker=load.build_talker(checkpoint),
        predictor=load.build_predictor(checkpoint), vocoder=load.build_vocoder(checkpoint),
        text=torch.cat(list(load.text_rows(checkpoint))),
        codec=load.codec_table(checkpoint).float(), tables=load.predictor_table(checkpoint),
        codebooks=load.codebooks(checkpoint),
    )


@pytest.fixture(params=CASES)
def case(request) -> dict[str, np.ndarray]:
    return dict(np.load(ORACLE / f"{request.param}.npz"))


def speak(network, case, mode: str, frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Return codes and hidden states of greedy speech, as the reference's loop makes them."""
    config, ids = network.config, torch.from_numpy(case["input_ids"][0]).long()
    pad = network.text[config.text_ids["tts_pad"]]
    beside = [network.text[i] for i in ids[4:-5]] + [network.text[config.text_ids["tts_eos"]]]
    text = chain(beside if mode == "stream" else [], repeat(pad))
    talker = generate.EagerTalker(network.talker, 128)
    predictor = generate.EagerPredictor(network.predictor, network.tables)
    hidden, logits = talker(torch.from_numpy(case[f"prompt_embeds_{mode}"]))
    codes, states = [], []
    end = config.codec_ids["eos"]
    allowed = [*range(config.vocoder.codes), end]
    for frame in range(frames):
        masked = torch.full_like(logits, -torch.inf)
        masked[allowed] = logits[allowed]
        if frame < MIN_FRAMES:
            masked[end] = -torch.inf
        first = int(masked.argmax())
        states.append(hidden.numpy())
        codes.append([first, *predictor(hidden, network.codec[first])])
        x = network.codec[first] + sum(
            network.tables[group, code].float() for group, code in enumerate(codes[-1][1:]))
        hidden, logits = talker((x + next(text))[None])
    return np.array(codes), np.array(states)


@pytest.mark.parametrize("mode", ["nonstream", "stream"])
def test_all_greedy_codes_are_the_references_and_so_are_the_hidden_states(network, case, mode):
    wanted = case[f"codes_{mode}"]
    codes, states = speak(network, case, mode, len(wanted))
    assert np.array_equal(codes, wanted)
    assert np.abs(states - case[f"hidden_{mode}"]).max() <= LIMIT


def test_a_prompt_in_one_call_and_one_by_one_give_the_same_hidden_state(network, case):
    prompt = torch.from_numpy(case["prompt_embeds_stream"])
    at_once, one_by_one = (generate.EagerTalker(network.talker, 64) for _ in range(2))
    together, _ = at_once(prompt)
    for row in prompt:
        last, _ = one_by_one(row[None])
    assert (together - last).abs().max() <= LIMIT


def test_the_text_rows_are_those_of_the_references_prompt(network, case):
    """The first three positions of a prompt are text alone."""
    ids = torch.from_numpy(case["input_ids"][0, :3]).long()
    assert np.abs(network.text[ids].numpy() - case["prompt_embeds_stream"][:3]).max() <= LIMIT


def chunked(vocoder, codes, sizes) -> np.ndarray:
    sizes, parts, start = iter(sizes), [], 0
    while start < codes.shape[1]:
        size = next(sizes)
        parts.append(vocoder(codes[:, start:start + size]))
        start += size
    return torch.cat(parts).numpy()


def chunkings():
    random = np.random.default_rng(8)
    return {
        "whole": repeat(10**6), "1 then 25": chain([1], repeat(25)), "4": repeat(4), "1": repeat(1),
        "7 1 40": chain([7, 1, 40], repeat(40)),
        "random": iter(random.integers(1, 30, 1000).tolist()),
    }


@pytest.mark.parametrize("name", list(chunkings()))
def test_the_vocoder_gives_the_references_samples_whatever_the_chunks(network, case, name):
    vocoder = generate.EagerVocoder(network.vocoder, network.codebooks)
    codes = torch.from_numpy(case["vocoder_codes"].astype(np.int64))
    made = chunked(vocoder, codes, chunkings()[name])
    assert np.abs(made - case["vocoder_pcm"]).max() <= LIMIT


def test_a_second_utterance_knows_nothing_of_the_first(network, case):
    vocoder = generate.EagerVocoder(network.vocoder, network.codebooks)
    codes = torch.from_numpy(case["vocoder_codes"].astype(np.int64))[:, :20]
    first = vocoder(codes)
    vocoder.reset()
    assert torch.equal(vocoder(codes), first)


def test_a_window_is_a_decode_that_begins_at_its_first_frame(network, case):
    """The same function, wherever in the utterance the window lies: positions are relative."""
    config = network.config.vocoder
    codes = torch.from_numpy(case["vocoder_codes"].astype(np.int64))[:, 30:60]
    vocoder = generate.EagerVocoder(network.vocoder, network.codebooks)
    made = chunked(vocoder, codes, repeat(4))
    features = generate.features(network.codebooks, codes)
    cos, sin = generate.rope(torch.arange(500, 530), config.stack.head_dim,
                             config.stack.rope_base)
    with torch.no_grad():
        mask = generate.window_mask(30, 0, config.window)
        late, *_ = network.vocoder(features, cos, sin, mask, *network.vocoder.zero_states())
    assert np.abs(made - late.numpy()).max() <= LIMIT


def test_what_is_further_back_than_the_window_is_not_seen_but_by_what_it_left_behind(network, case):
    """72 frames of a single layer: a window of them differs from the whole by the layers' reach."""
    codes = torch.from_numpy(case["vocoder_codes"].astype(np.int64))
    vocoder = generate.EagerVocoder(network.vocoder, network.codebooks)
    whole = vocoder(codes)
    frame = network.config.vocoder.frame_samples
    vocoder.reset()
    window = vocoder(codes[:, -97:])[-25 * frame:]
    difference = (window - whole[-25 * frame:]).abs().max()
    assert LIMIT < difference < 1e-2
