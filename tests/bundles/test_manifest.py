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
        ("created: ", "created: soon #", "created is 'soon', expected a date and time"),
        ("name: small", "name: \"\\e[2J\"", "which holds characters not to be printed"),
        ("name: small", "name: " + "x" * 5000, "name has 5000 characters, expected up to 4096"),
        ("unit: rad", "unit: parsec", "shoulder has the unit 'parsec', expected one of rad"),
        ("state: observation.state, action: action",
         "state: action, action: observation.state", "expected observation.state and action"),
        ("state: observation.state, action: action", "state: a, action: a", "has 'a' for both"),
        ("max_action: 8", "max_action: 1", "dimensions.action is 2, max_action 1"),
        ("max_state: 8", "max_state: 1", "dimensions.state is 2, max_state 1"),
        ("action_steps: 4", "action_steps: 5", "action_steps is 5 of a chunk of 4"),
        ("prefix: 7", "prefix: 8", "dimensions.prefix is 8; 1 slots of 4 tokens"),
        ("language_tokens: 2", "language_tokens: 3", "max_length is 2, dimensions.language_tok"),
        ("slots: 1", "slots: 2", "there are 1 cameras and 0 empty ones, prefix.slots is 2"),
        ("empty_cameras: 0", "empty_cameras: 1", "1 empty ones, prefix.slots is 1"),
        ("height: 64", "height: 1099511627776", "height is 1099511627776, expected 1 to 65536"),
        ("pad_value: -1.0", "pad_value: 5.0", "pad_value is 5.0, beyond -1.0 to 1.0"),
        ("low: -1.0", "low: 5.0", "image.low is 5.0, high 1.0"),
        ("steps: 10, t_start", "steps: 9, t_start", "flow.steps is 9, dimensions.steps 10"),
        ("dt: -0.1", "dt: -0.05", "by -0.05 in 10 steps, expected to 0"),
        ("min_period: 0.004", "min_period: 5.0", "min_period is 5.0, max_period 4.0"),
        ("pad_token: 0", "pad_token: 2", "pad_token is 2, embeddings.rows 2"),
        ("eps: 1.0e-08", "eps: 0.5", "eps is 0.5, expected 0.0 to 0.001"),
        ("same_machine: 1.0e-06", "same_machine: 1.0", "same_machine is 1.0, expected 0.0 to"),
        ("tokenizer: {file: tokenizer.json", "tokenizer: {file: statistics.json",
         "the file 'statistics.json' is named for two things"),
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


@pytest.mark.parametrize(("name", "shape"), [
    ("noisy", (5, 8)), ("velocity", (4, 9)), ("pixels", (3, 64, 65)), ("language", (3, 8)),
    ("time", (1, 9)), ("valid", (8,)), ("keys_0", (1, 8, 8)), ("image_3", (4, 9)),
])
def test_a_tensor_that_the_other_sizes_contradict_is_refused(pristine, name, shape):
    manifest = read_manifest(pristine)
    entry = manifest.programs["vision_encoder"]
    changed = dataclasses.replace(entry, inputs=(layout.Tensor(name, "float32", shape),))
    programs = {**manifest.programs, "vision_encoder": changed}
    with pytest.raises(BundleError) as caught:
        check(dataclasses.replace(
            manifest, programs=programs, memory=layout.Memory.of(programs)
        ), "bundle.yaml")
    assert f"{name} is {list(shape)}, by dimensions, image and embeddings it has to be" in str(
        caught.value
    )


def test_a_program_more_than_the_family_has_is_refused(pristine):
    manifest = read_manifest(pristine)
    extra = dataclasses.replace(manifest.programs["action_head"], file="extra.pte")
    programs = {**manifest.programs, "extra": extra}
    files = {**manifest.files, "extra.pte": layout.FileEntry("0" * 64, 0),
             "golden/extra.npz": layout.FileEntry("0" * 64, 0)}
    with pytest.raises(BundleError, match="programs are .*extra, expected action_head, fusion_b"):
        check(dataclasses.replace(
            manifest, programs=programs, memory=layout.Memory.of(programs), files=files,
            golden={**manifest.golden, "extra": "golden/extra.npz"},
        ), "bundle.yaml")
