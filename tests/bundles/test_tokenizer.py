# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A tokenizer's file can hold what kills or stops a process: it is refused before that."""

from __future__ import annotations

import copy
import json
import os
import signal
from pathlib import Path

import pytest

from omni_ros.bundles import BundleError, open_bundle, tokenizer_trial
from omni_ros.bundles.child import Outcome
from omni_ros.bundles.tokenizer_rules import MAX_BYTES, check_content, check_rules
from omni_ros.bundles.tokenizer_trial import try_tokenizer

GPT = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
PLAIN = {
    "version": "1.0", "truncation": None, "padding": None,
    "added_tokens": [{"id": 2, "content": "<pad>", "single_word": False, "lstrip": False,
                      "rstrip": False, "normalized": False, "special": True}],
    "normalizer": None, "pre_tokenizer": GPT, "post_processor": None, "decoder": GPT,
    "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False,
              "continuing_subword_prefix": None, "end_of_word_suffix": None,
              "byte_fallback": False, "vocab": {"a": 0, "b": 1}, "merges": []},
}
SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
DOUBLES = {"type": "Replace", "pattern": {"String": "u"}, "content": "u" * 50}
LOOKS = {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated", "invert": False}


def template(*ids: int) -> dict:
    return {
        "type": "TemplateProcessing", "pair": [],
        "single": [{"SpecialToken": {"id": "<pad>", "type_id": 0}},
                   {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<pad>": {"id": "<pad>", "ids": list(ids), "tokens": ["<pad>"]}},
    }


def sequence(*steps: dict) -> dict:
    return {"type": "Sequence", "normalizers": list(steps)}


def changed(part: str, value: object) -> dict:
    content = copy.deepcopy(PLAIN)
    *outer, last = part.split(".")
    place = content
    for key in outer:
        place = place[key]
    place[last] = value
    return content


@pytest.mark.parametrize("content", [
    PLAIN,
    changed("normalizer", sequence({"type": "NFC"}, SPACES)),
    changed("normalizer", {"type": "Prepend", "prepend": "\u2581"}),
    changed("pre_tokenizer", {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True}, GPT]}),
    changed("pre_tokenizer", {"type": "Split", "pattern": {"String": " "},
                              "behavior": "MergedWithPrevious", "invert": False}),
    changed("post_processor", template(2)),
    changed("decoder", {"type": "Sequence", "decoders": [
        SPACES, {"type": "ByteFallback"}, {"type": "Fuse"}]}),
], ids=["bytes", "normalised", "prepended", "digits", "split", "template", "decoder"])
def test_what_backbones_of_policies_use_is_taken(content):
    check_content(content, rows=3)


@pytest.mark.parametrize(("part", "value", "words"), [
    ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "/////w=="}, "'Precompiled'"),
    ("normalizer", sequence({"type": "Precompiled", "precompiled_charsmap": ""}), "'Precompiled'"),
    ("normalizer", sequence(DOUBLES, DOUBLES), "2.5e+03 times longer; expected 64 times at most"),
    ("normalizer", sequence(*[SPACES] * 40), "more than 32 steps"),
    ("normalizer", {"type": "Prepend", "prepend": "a" * 10**6}, "a text of up to 16 characters"),
    ("normalizer", {**SPACES, "pattern": {"Regex": "(a+)+$"}}, "expected plain text"),
    ("normalizer", {**SPACES, "pattern": {"String": ""}}, "pattern is ''"),
    ("normalizer", "NFC", "normalizer is 'NFC'; expected a mapping"),
    ("pre_tokenizer", LOOKS, "expected plain text"),
    ("pre_tokenizer", {"type": "FixedLength", "length": 0}, "'FixedLength'"),
    ("pre_tokenizer", {"type": "Sequence", "pretokenizers": 3}, "Sequence has 3"),
    ("post_processor", template(*[2] * 17), "adds 17 tokens; expected up to 16"),
    ("post_processor", template(3), "has the id 3; expected 0 to 2"),
    ("post_processor", {"type": "RobertaProcessing"}, "'RobertaProcessing'"),
    ("decoder", {**SPACES, "pattern": {"Regex": "x"}}, "expected plain text"),
    ("model", None, "model is None; expected BPE"),
    ("model.type", "Unigram", "model is 'Unigram'; expected BPE"),
    ("model.dropout", 0.5, "dropout is 0.5; expected null"),
    ("model.continuing_subword_prefix", "##", "continuing_subword_prefix is '##'"),
    ("model.vocab", {"a": 0, "b": 10**9}, "'b' has the id 1000000000; expected 0 to 2"),
    ("model.vocab", {"a": True}, "has the id True"),
    ("model.vocab", ["a"], "vocab is ['a']"),
    ("model.unk_token", "<unk>", "unk_token is '<unk>'"),
    ("added_tokens", [{"id": 2**32 - 1, "content": "pick"}], "'pick' has the id 4294967295"),
    ("added_tokens", [{"id": 1, "content": ""}], "content is ''"),
    ("added_tokens", {"a": 1}, "added_tokens is {'a': 1}"),
])
def test_what_could_harm_a_process_is_refused_by_name(part, value, words):
    with pytest.raises(BundleError) as caught:
        check_content(changed(part, value), rows=3)
    assert words in str(caught.value)


@pytest.mark.parametrize(("text", "words"), [
    ("[" * 10**6, "is no tokenizer"), ('{"model": {}, "model": {}}', "a key is there twice"),
    ("[]", "expected a mapping"), (b"\xff", "is no tokenizer"),
], ids=["deep", "twice", "a list", "not text"])
def test_what_is_no_mapping_of_json_is_refused_with_the_files_name(tmp_path, text, words):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BundleError) as caught:
        check_rules(path, rows=3)
    assert str(caught.value).startswith(f"{path}: ") and words in str(caught.value)


def test_a_file_that_is_too_long_is_not_read(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.touch()
    os.truncate(path, MAX_BYTES + 1)
    with pytest.raises(BundleError, match="more than 67108864 bytes"):
        check_rules(path, rows=3)


def write(path: Path, content: dict) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_more_tokens_than_a_prompt_may_have_are_refused(tmp_path):
    pytest.importorskip("tokenizers")
    path = write(tmp_path / "tokenizer.json", changed("post_processor", template(2, 2)))
    with pytest.raises(BundleError, match=r"gives 2 tokens .*cut to 1|can be used"):
        try_tokenizer(path, max_length=1, rows=3)


class Panic(BaseException):
    """As the library raises it where its own code panics."""


def test_a_panic_of_the_library_is_an_error_with_the_files_name(tmp_path, monkeypatch):
    class Library:
        class Tokenizer:
            @staticmethod
            def from_file(path):
                raise Panic("index out of bounds")

    monkeypatch.setattr(tokenizer_trial, "import_module", lambda name: Library)
    path = write(tmp_path / "tokenizer.json", PLAIN)
    with pytest.raises(BundleError, match="tokenizer.json: .*index out of bounds"):
        try_tokenizer(path, max_length=8, rows=3)


def test_a_child_that_computed_too_long_says_so():
    assert "in the time that it may compute" in Outcome([], -signal.SIGXCPU, "").why()


@pytest.mark.usefixtures("executorch")
@pytest.mark.parametrize("content", [
    {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////wAAAAAAAAAAAAAAAA=="}},
    {"normalizer": sequence(*[DOUBLES] * 6)},
    {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "zz"]]}},
], ids=["aborts", "never ends", "does not load"])
def test_a_bundle_with_a_harmful_tokenizer_is_refused_and_the_process_lives(bundle, sign, content):
    pytest.importorskip("tokenizers")
    path = bundle / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **content}))
    sign(bundle)
    with pytest.raises(BundleError) as caught:
        open_bundle(bundle)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.usefixtures("executorch")
def test_a_process_that_reads_no_prompt_needs_no_tokenizer(bundle, sign):
    (bundle / "tokenizer.json").write_text("{}")
    sign(bundle)
    open_bundle(bundle, programs=["vision_encoder"])
