# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The text tokenizer of a checkpoint as one tokenizer.json, which needs no transformers to be read.

Checkpoints are released with vocab.json, merges.txt and tokenizer_config.json: byte-level pairs in
Qwen2's way of splitting words. A tokenizer.json that is there already is taken as it is.
"""

from __future__ import annotations

import json
from pathlib import Path

from ..common.errors import CheckpointError
from ..common.weights import read_json

#: How Qwen2's tokenizer splits a text before it merges bytes.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
NAME = "tokenizer.json"
#: Tokens that prompts are made of, by our names of their ids.
MARKS = {"im_start": "<|im_start|>", "im_end": "<|im_end|>"}


def tokenizer_text(folder: Path) -> str:
    """Return the text of tokenizer.json for a checkpoint's folder.

    :raises CheckpointError: files are missing or damaged; with what to fetch.
    """
    from tokenizers import Tokenizer

    whole = folder / NAME
    try:
        if whole.is_file():
            return str(Tokenizer.from_file(str(whole)).to_str())
        return str(build(folder).to_str())
    except CheckpointError:
        raise
    except Exception as error:  # the library raises nothing more special
        raise CheckpointError(f"{folder}: the tokenizer cannot be read: {error}") from None


def build(folder: Path):
    """Make a tokenizer of vocab.json, merges.txt and tokenizer_config.json."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

    paths = [folder / name for name in ("vocab.json", "merges.txt", "tokenizer_config.json")]
    for path in paths:
        if not path.is_file():
            raise CheckpointError(
                f"{path} does not exist: expected the tokenizer's files as released (vocab.json, "
                f"merges.txt, tokenizer_config.json), or {NAME}"
            )
    tokenizer = Tokenizer(models.BPE.from_file(str(paths[0]), str(paths[1])))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = Sequence([
        Split(Regex(SPLIT), behavior="isolated"),
        ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    added = read_json(paths[2]).get("added_tokens_decoder", {})
    if not isinstance(added, dict):
        raise CheckpointError(f"{paths[2]}: added_tokens_decoder: expected an object")
    for id_, token in sorted(added.items(), key=lambda item: int(item[0])):
        content = str(token["content"])
        special = bool(token.get("special", True))
        add = tokenizer.add_special_tokens if special else tokenizer.add_tokens
        add([AddedToken(content, normalized=False, special=special)])
        if tokenizer.token_to_id(content) != int(id_):
            raise CheckpointError(
                f"{paths[2]}: {content} has the id {id_}, behind vocab.json it would be "
                f"{tokenizer.token_to_id(content)}: fetch both files again"
            )
    return tokenizer


def check_marks(text: str, ids: dict[str, int], rows: int, folder: Path) -> None:
    """Refuse a tokenizer whose ids are not those of the config."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(text)
    for ours, token in MARKS.items():
        found = tokenizer.token_to_id(token)
        if found != ids[ours]:
            raise CheckpointError(
                f"{folder}: {token} is {found} to the tokenizer and {ids[ours]} in config.json: "
                "expected the same; fetch both again"
            )
    role = tokenizer.encode("assistant", add_special_tokens=False).ids
    if role != [ids["assistant"]]:
        raise CheckpointError(
            f"{folder}: 'assistant' is {role} to the tokenizer and {ids['assistant']} in "
            "config.json: expected the same; fetch both again"
        )
    if tokenizer.get_vocab_size() > rows:
        raise CheckpointError(
            f"{folder}: the tokenizer has {tokenizer.get_vocab_size()} tokens, the text table "
            f"{rows} rows: expected no more tokens than rows"
        )


def byte_tokenizer(marks: dict[str, int]) -> str:
    """Return a tokenizer.json of the 256 bytes and a few marks by id, for made-up checkpoints."""
    from tokenizers.pre_tokenizers import ByteLevel

    letters = bytes_to_letters()
    assert set(letters) == set(ByteLevel.alphabet())
    vocabulary = {letter: byte for byte, letter in enumerate(letters)}
    data = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": id_, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": name.startswith("<|")}
            for name, id_ in sorted(marks.items(), key=lambda item: item[1])
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                          "use_regex": False},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocabulary | dict(marks), "merges": []},
    }
    return json.dumps(data, ensure_ascii=False)


def bytes_to_letters() -> list[str]:
    """Return the printable letter that stands for each byte in byte-level vocabularies."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
