# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni export` of a Qwen3-TTS: what is refused, and what becomes of a part.

A whole export takes a minute and more; `make setup-qwen` does one, of the checkpoint that the
bundle's own tests then use.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("executorch.exir")

from omni_ros.bundles.qwen3_tts_sizes import programs  # noqa: E402
from omni_ros.cli.main import main  # noqa: E402
from omni_ros.models.export.conv8 import Quantiser, prompt_rows, spoken  # noqa: E402
from omni_ros.models.export.families import QWEN, family_of  # noqa: E402
from omni_ros.models.export.memory import Peak  # noqa: E402
from omni_ros.models.export.qwen3_tts import export_part, export_voice  # noqa: E402
from omni_ros.models.export.qwen3_tts_parts import (  # noqa: E402
    PARTS, Shape, build, program_names,
)
from omni_ros.models.export.qwen3_tts_sections import speech_section  # noqa: E402
from omni_ros.models.qwen3_tts.generate import EagerVocoder  # noqa: E402
from omni_ros.models.qwen3_tts.load import codebooks, codec_table, load_checkpoint  # noqa: E402
from omni_ros.models.qwen3_tts.random_checkpoint import write_checkpoint  # noqa: E402

SHAPE = Shape(contexts=(32, 64), prefill=8, chunks=(1, 3))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("qwen") / "made"
    write_checkpoint(folder, size="tiny", kind="custom_voice")
    return folder


def refusal(capsys, *words: object) -> str:
    assert main(["export", *map(str, words)]) == 2
    return capsys.readouterr().err


def test_a_checkpoint_is_known_by_its_model_type(checkpoint):
    assert family_of(checkpoint) == QWEN


@pytest.mark.parametrize(("options", "words"), [
    ({"recipes": {"vocoder": "int4"}}, ("vocoder", "int4", "conv8")),
    ({"gguf": ("q5_k",)}, ("q5_k", "q8_0")),
    ({"shape": Shape(contexts=(64, 32))}, ("contexts", "[64, 32]", "rise")),
    ({"shape": Shape(chunks=(2, 4))}, ("chunks", "[2, 4]", "1 first")),
    ({"shape": Shape(contexts=(8,), prefill=16)}, ("prefill", "16", "8")),
])
def test_choices_that_no_bundle_can_have_are_refused_before_anything_is_read(
    tmp_path, options, words
):
    with pytest.raises(ValueError) as caught:
        export_voice(tmp_path / "nowhere", tmp_path / "out", **options)
    assert all(word in str(caught.value) for word in words)
    assert list(tmp_path.iterdir()) == []


def test_options_of_policies_and_of_voices_do_not_mix(checkpoint, capsys, tmp_path):
    text = refusal(capsys, checkpoint, "--out", tmp_path / "out", "--cameras", "1")
    assert "--cameras is for policies" in text
    text = refusal(capsys, checkpoint, "--out", tmp_path / "out", "--contexts", "64,many")
    assert "--contexts '64,many'" in text
    policy = tmp_path / "policy"
    policy.mkdir()
    (policy / "config.json").write_text('{"type": "smolvla"}')
    text = refusal(capsys, policy, "--out", tmp_path / "out", "--joints", "raw", "--gguf", "f16")
    assert "--gguf is for a Qwen3-TTS" in text


def test_the_manifest_wants_the_programs_that_the_export_makes(checkpoint):
    opened = load_checkpoint(checkpoint)
    speech = speech_section(opened, SHAPE, {})
    wanted = programs(speech, opened.config.vocoder.frame_samples)
    made = [name for part in PARTS for name in program_names(part, SHAPE, 16)]
    assert list(wanted) == made
    assert len(wanted["vocoder_3"][0]) == 4 + 2 * 2 + len(speech.vocoder.tails)


@pytest.mark.slow
def test_a_part_becomes_methods_of_one_file_each_one_delegate_near_the_network(tmp_path):
    write_checkpoint(tmp_path / "made", size="tiny_equal")
    for folder in ("golden", "work"):
        (tmp_path / folder).mkdir()
    entries = export_part(tmp_path / "made", "predictor", "fp32", SHAPE, tmp_path,
                          tmp_path / "work", 1, False, True, 16, lambda line: None, Peak())  # fmt: skip
    assert list(entries) == ["predictor_first", "predictor_step"]
    for name, entry in entries.items():
        assert (entry.file, entry.method, entry.recipe) == ("predictor.pte", name, "fp32")
        assert entry.delegates == {"XnnpackBackend": 1} and entry.leftover == ()
        assert sum(entry.arenas) == 0 and entry.difference < 1e-5
        assert (tmp_path / "golden" / f"{name}.npz").is_file()


def test_ranges_are_taken_from_a_sentence_by_a_speaker_and_drawn_alike_each_time(checkpoint):
    opened = load_checkpoint(checkpoint)
    prompt, pad = prompt_rows(opened, codec_table(opened).float())
    assert len(prompt) > 90 and pad.shape == prompt.shape[1:]  # its tokenizer is one of bytes
    codes = spoken(opened, 6)
    assert codes.shape == (opened.config.predictor.groups, 6) and len(codes.unique()) > 6
    assert bool((codes == spoken(opened, 6)).all())


@pytest.mark.slow
def test_convolutions_in_8_bits_say_codes_that_they_never_saw_nearly_the_same(tmp_path):
    import torch

    write_checkpoint(tmp_path / "made", size="tiny_equal")
    checkpoint = load_checkpoint(tmp_path / "made")
    plain = build("vocoder", checkpoint, Shape(chunks=(1,)))
    quantiser = Quantiser(plain, checkpoint)
    eight = quantiser.quantised()["vocoder_1"].module
    books = codebooks(checkpoint)
    codes = torch.randint(books.shape[1], (books.shape[0], 30, 1),
                          generator=torch.Generator().manual_seed(3))
    sounds = []
    for module in (plain["vocoder_1"].module, eight):
        voice = EagerVocoder(plain["vocoder_1"].module, books)
        voice.vocoder = module
        sounds.append(torch.cat([voice(codes[:, frame]) for frame in range(codes.shape[1])]))
    clean, made = sounds
    snr = 10 * torch.log10((clean**2).sum() / ((made - clean) ** 2).sum())
    assert 8.0 < snr < 60.0  # quantised, and still the same sound
