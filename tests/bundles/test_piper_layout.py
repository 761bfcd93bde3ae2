# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the manifest of a voice must be, and what it may not."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from omni_ros.bundles import Bundle, BundleError, manifest as manifest_file, read_manifest
from omni_ros.bundles.named import bundle_folder
from omni_ros.bundles.piper_layout import contents, read_symbols

try:
    BUNDLE = bundle_folder("voice_joe")
except BundleError:
    pytest.skip("the voice was not exported; make setup does it", allow_module_level=True)


@pytest.fixture(scope="module")
def voice():
    return read_manifest(BUNDLE)


def refusal(manifest) -> str:
    with pytest.raises(BundleError) as caught:
        manifest_file.to_text(manifest)
    return str(caught.value)


def test_what_is_written_is_read_back_equal(voice):
    assert manifest_file.from_text(manifest_file.to_text(voice).encode()) == voice


@pytest.mark.parametrize(
    ("part", "change", "reason"),
    [
        ("decoder", {"sizes": (96, 24)}, "decoder.sizes is [96, 24], expected sizes that rise"),
        ("flow", {"sizes": ()}, "flow.sizes is [], expected sizes that rise"),
        ("flow", {"context": 64}, "expected more than twice the context of 64"),
        ("decoder", {"sizes": (24, 48, 97)}, "the windows need"),
        ("sound", {"frame_samples": 255}, "expected float32 of"),
        ("symbols", {"width": 191}, "expected float32 of"),
        ("symbols", {"file": "nothing.json"}, "symbols.file is 'nothing.json', which is not among"),
        ("licence", {"file": "CARD"}, "licence.file is 'CARD', which is not among files"),
    ],
)
def test_parts_that_do_not_fit_are_refused_with_both_sides(voice, part, change, reason):
    changed = dataclasses.replace(getattr(voice, part), **change)
    assert reason in refusal(dataclasses.replace(voice, **{part: changed}))


def test_a_program_more_or_less_than_the_windows_need_is_refused(voice):
    programs = dict(voice.programs)
    programs.popitem()
    reason = refusal(dataclasses.replace(voice, programs=programs))
    assert "golden has" in reason or "the windows need" in reason


def test_a_family_that_is_not_known_is_refused_by_its_name(voice):
    text = manifest_file.to_text(voice).replace("family: piper", "family: pipers")
    import hashlib

    body = text[: text.rindex("manifest_sha256:")].encode()
    signed = body + b"manifest_sha256: %s\n" % hashlib.sha256(body).hexdigest().encode()
    with pytest.raises(BundleError, match="family is 'pipers', this version of omni_ros knows"):
        manifest_file.from_text(signed)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", "no mapping of symbols"), ("{", "holds no symbols"),
        ('{"_": 0, "^": 1, "$": 2}', "it lacks"), ('{"_": 0, "^": 1, "$": 2, " ": 300}', "of 256"),
        ('{"_": true}', "has the row"),
    ],
)
def test_symbols_that_are_none_are_refused_with_the_file(voice, tmp_path, content, reason):
    (tmp_path / voice.symbols.file).write_text(content)
    with pytest.raises(BundleError, match=reason):
        read_symbols(Bundle(tmp_path, voice))


def test_a_symbol_table_that_is_not_finite_is_refused(voice, tmp_path):
    (tmp_path / voice.symbols.file).write_bytes((BUNDLE / voice.symbols.file).read_bytes())
    table = np.load(BUNDLE / voice.symbols.table)
    table[3, 3] = np.nan
    np.save(tmp_path / voice.symbols.table, table)
    with pytest.raises(BundleError, match="not finite"):
        contents(Bundle(tmp_path, voice))


def test_symbols_are_those_of_the_voice(voice):
    symbols = read_symbols(Bundle(BUNDLE, voice))
    assert json.loads((BUNDLE / voice.symbols.file).read_text()) == symbols
    assert symbols["_"] == 0 and symbols["\u02c8"] == 120
