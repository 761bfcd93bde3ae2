# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import hashlib

import pytest

from omni_ros.bundles import BundleError, layout, manifest as manifest_file, read_manifest
from omni_ros.bundles.checks import check


@pytest.fixture
def text(pristine) -> str:
    return (pristine / manifest_file.MANIFEST).read_text()


def signed(text: str) -> bytes:
    body = text[: text.rindex("manifest_sha256:")].encode()
    return body + b"manifest_sha256: %s\n" % hashlib.sha256(body).hexdigest().encode()


def refusal(text: bytes) -> str:
    with pytest.raises(BundleError) as caught:
        manifest_file.from_text(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_written_is_read_back_equal(pristine, text):
    manifest = read_manifest(pristine)
    assert manifest_file.to_text(manifest) == text
    assert manifest_file.from_text(text.encode()) == manifest


def test_raw_joints_are_the_explicit_word(pristine):
    raw = dataclasses.replace(read_manifest(pristine), joints="raw")
    assert manifest_file.from_text(manifest_file.to_text(raw).encode()).joints == "raw"


def test_an_edited_manifest_is_refused(text):
    assert "edited or damaged" in refusal(text.replace("steps: 10", "steps: 1").encode())


def test_a_cut_manifest_is_refused(text):
    assert "cut or damaged" in refusal(text[: len(text) // 2].encode() + b"\n")


@pytest.mark.parametrize("number", ["2", "0", "01", "1.0", "9" * 5000, "one"])
def test_another_format_is_refused_with_both_numbers(text, number):
    assert "reads 1" in refusal(signed(text.replace("format: 1", f"format: {number}")))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("family: smolvla", "famly: smolvla", "unknown key 'famly'; known here: family, name"),
        ("family: smolvla\n", "", "the key family is missing"),
        ("chunk: 4", "chunk: '4'", "dimensions.chunk is '4', expected an integer"),
        ("chunk: 4", "chunk: 4.0", "dimensions.chunk is 4.0, expected an integer"),
        ("chunk: 4", "chunk: true", "dimensions.chunk is True, expected an integer"),
        ("chunk: 4", "chunk: 0", "dimensions.chunk is 0, expected 1 to"),
        ("chunk: 4", "chunk: 99999999999999999999", "expected 1 to"),
        ("chunk: 4", "chunk: null", "dimensions.chunk is None, expected an integer"),
        ("low: -1.0", "low: .nan", "image.low is nan, expected a finite number"),
        ("low: -1.0", "low: -.inf", "image.low is -inf, expected a finite number"),
        ("resize: pad", "resize: crop", "image.resize is 'crop', expected one of: pad"),
        ("newline: true", "newline: 1", "tokenizer.newline is 1, expected true or false"),
        ("state: MEAN_STD", "state: NONE", "normalisation.state is 'NONE'"),
        ("name: front", "name: 'front camera'", "cameras has the name 'front camera'"),
        ("name: gripper", "name: shoulder", "joints has a name twice"),
        ("joints:\n- {name: shoulder, unit: rad}\n", "joints:\n", "joints has 1 names"),
        ("shape: [8, 4]", "shape: [8, -4]", "outputs[0].shape is -4"),
        ("dtype: float32", "dtype: float12", "dtype is 'float12'"),
        ("leftover: []", "leftover: [1]", "leftover[0] is 1, expected text"),
        ("leftover: []", "leftover: {}", "leftover is {}, expected a list"),
        ("arenas: [0]", "arenas: [64]", "memory is"),
        ("constants: ", "constants: 1", "memory is"),
        ("tokenizer: {file: tokenizer.json", "tokenizer: {file: other.json", "not among files"),
        ("vision_encoder: golden/vision_encoder.npz, ", "", "golden has fusion_backbone"),
        ("backbone_sha256: null", "backbone_sha256: [1]", "provenance.backbone_sha256 is [1]"),
        ("created: ", "created: 2026-11-29 #", "expected text"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(text, old, new, words):
    assert old in text
    assert words in refusal(signed(text.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("name: !!python/object/apply:os.system [true]", "tag"),
        ("name: !!binary aGk=", "tag"),
        ("name: &a small", "anchors and aliases"),
        ("name: *a", "aliases"),
        ("name: {<<: {a: 1}}", "a key that is no text"),
        ("name: {1: 2}", "a key that is no text"),
        ("name: {? [a] : b}", "a key that is no text"),
        ("name: small\nname: large", "twice"),
        ("name: " + "[" * 5000 + "]" * 5000, "nested deeper"),
        ("name: " + "{a: " * 50 + "1" + "}" * 50, "nested deeper"),
        ("name: small\n---\nname: other", "cannot be read"),
        ("name: 'open", "cannot be read"),
        ("name: \t- x", "cannot be read"),
        ("name: " + "9" * 20000, "cannot be read"),
        ("name: 2026-99-99", "cannot be read"),
        ("name: a: b", "cannot be read"),
        ("name: \x07", "cannot be read"),
    ],
)
def test_yaml_that_does_more_than_hold_data_is_refused(text, line, words):
    changed = text.replace("name: small", line, 1)
    assert words in refusal(signed(changed))


def test_a_yaml_bomb_is_refused_at_once(text):
    bomb = 'a: &a ["x","x","x","x","x","x","x","x","x"]\n' + "".join(
        f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi")
    )
    assert "anchors and aliases" in refusal(signed(text.replace("family:", bomb + "family:", 1)))


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd", "../outside", "a/../../b", "a//b", "./a", "a/.", "~/a", "a\\b", "c:a",
        "a\x00b", "a\nb", "", "a" * 201, "a/", "bundle.yaml", "BUNDLE.yaml",
    ],
)  # fmt: skip
def test_a_file_name_that_could_lead_elsewhere_is_refused(pristine, name):
    manifest = read_manifest(pristine)
    files = {**manifest.files, name: layout.FileEntry("0" * 64, 0)}
    with pytest.raises(BundleError, match="files has"):
        check(dataclasses.replace(manifest, files=files), "bundle.yaml")


def test_names_that_differ_only_by_case_are_refused(pristine):
    manifest = read_manifest(pristine)
    files = {**manifest.files, "Tokenizer.JSON": layout.FileEntry("0" * 64, 0)}
    with pytest.raises(BundleError, match="'Tokenizer.JSON' beside 'tokenizer.json'"):
        check(dataclasses.replace(manifest, files=files), "bundle.yaml")


def test_memory_counts_a_tensor_that_is_handed_on_once(pristine):
    memory = read_manifest(pristine).memory
    # x [8, 32], y [8, 4]; x [4, 16], keys, values [4, 8]; x, y [4, 8]
    assert memory.inputs_outputs == 4 * (256 + 32 + 64 + 32 + 32 + 32 + 32)
    assert memory.total == memory.constants + memory.workspaces + memory.inputs_outputs
