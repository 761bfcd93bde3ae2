# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a tokenizer.json may consist of.

The library that reads it runs whatever the file asks for: regular expressions, tables of binary
data, replacements that double a text again and again; some of it aborts the process or never ends.
Policies need little of that, so only that little is taken, and each part has bounds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omni_ros.bundles.errors import BundleError, short

#: The largest that a backbone of a policy comes with has 35 MB.
MAX_BYTES = 1 << 26
#: Steps of one kind, sequences flattened.
MAX_STEPS = 32
#: How many times longer replacements may make a text, all taken together.
MAX_GROWTH = 64
#: Characters of one replacement, prefix or added token.
MAX_TEXT = 256
#: Tokens that a template may put around a prompt.
MAX_SPECIAL = 16

NORMALIZERS = (
    "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Prepend", "Replace",
)
PRE_TOKENIZERS = (
    "ByteLevel", "Digits", "Metaspace", "Punctuation", "Split", "Whitespace", "WhitespaceSplit",
)
POST_PROCESSORS = ("ByteLevel", "TemplateProcessing")
DECODERS = ("BPEDecoder", "ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Strip")
#: Keys under which a sequence of each kind has its members.
MEMBERS = {
    "normalizer": "normalizers", "pre_tokenizer": "pretokenizers",
    "post_processor": "processors", "decoder": "decoders",
}


def check_rules(path: Path, *, rows: int) -> None:
    """Read a tokenizer.json as JSON, and refuse what no policy needs.

    :param rows: of the token table: every id must be below.
    :raises BundleError: what part of it is not taken, and what would be; starts with the path.
    """
    try:
        content = _read(path)
        check_content(content, rows=rows)
    except BundleError as error:
        raise BundleError(f"{path}: {error}; give the backbone's own tokenizer.json") from None


def check_content(content: Any, *, rows: int) -> None:
    """As :func:`check_rules`, of what was read; without the path."""
    _expect(isinstance(content, Mapping), f"is {short(content)}", "a mapping")
    growth = 1.0
    for step in _steps(content, "normalizer", NORMALIZERS):
        growth *= _check_normalizer(step)
        _expect(growth <= MAX_GROWTH, f"normalizer makes a text {growth:.3g} times longer",
                f"{MAX_GROWTH} times at most")  # fmt: skip
    for step in _steps(content, "pre_tokenizer", PRE_TOKENIZERS):
        if step["type"] == "Split":
            _plain_pattern(step, "pre_tokenizer: Split")
    for step in _steps(content, "decoder", DECODERS):
        if step["type"] == "Replace":
            _plain_pattern(step, "decoder: Replace")
    for step in _steps(content, "post_processor", POST_PROCESSORS):
        if step["type"] == "TemplateProcessing":
            _check_template(step, rows)
    _check_model(content.get("model"), rows)
    _check_added(content.get("added_tokens") or [], rows)


def _read(path: Path) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            # Which of the two counts would depend on the reader.
            raise ValueError("a key is there twice")
        return made

    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise BundleError(f"is no tokenizer ({reason[:200]})") from error


def _steps(
    content: Mapping[str, Any], kind: str, known: tuple[str, ...]
) -> Iterator[Mapping[str, Any]]:
    """Give the steps of a kind in order, those of sequences one by one."""
    waiting, count = [content.get(kind)], 0
    while waiting:
        step = waiting.pop(0)
        if step is None:
            continue
        count += 1
        _expect(count <= MAX_STEPS, f"{kind} has more than {MAX_STEPS} steps", "fewer")
        _expect(isinstance(step, Mapping), f"{kind} is {short(step)}", "a mapping")
        name = step.get("type")
        if name == "Sequence":
            members = step.get(MEMBERS[kind])
            _expect(isinstance(members, list), f"{kind}: Sequence has {short(members)}", "a list")
            _expect(all(members), f"{kind}: Sequence has an empty member", "steps")
            waiting[:0] = members
            continue
        _expect(name in known, f"{kind} is {short(name)}", f"one of {', '.join(known)}")
        yield step


def _check_normalizer(step: Mapping[str, Any]) -> float:
    """Return how many times longer a step can make a text."""
    if step["type"] == "Prepend":
        _text(step.get("prepend"), "normalizer: Prepend: prepend", MAX_SPECIAL)
    if step["type"] != "Replace":
        return 1.0
    pattern = _plain_pattern(step, "normalizer: Replace")
    content = _text(step.get("content"), "normalizer: Replace: content", MAX_TEXT, empty=True)
    return max(1.0, len(content) / len(pattern))


def _plain_pattern(step: Mapping[str, Any], where: str) -> str:
    """Return the text that a step looks for: a regular expression may take for ever."""
    pattern = step.get("pattern")
    plain = isinstance(pattern, Mapping) and list(pattern) == ["String"]
    _expect(plain, f"{where} looks for {short(pattern)}", "plain text ({\"String\": ...})")
    return _text(pattern["String"], f"{where}: pattern", MAX_TEXT)


def _check_template(step: Mapping[str, Any], rows: int) -> None:
    pieces, specials = step.get("single"), step.get("special_tokens", {})
    fits = isinstance(pieces, list) and isinstance(specials, Mapping)
    _expect(fits, "post_processor: TemplateProcessing is incomplete", "single, special_tokens")
    lengths = {}
    for name, entry in specials.items():
        ids = entry.get("ids") if isinstance(entry, Mapping) else None
        _expect(isinstance(ids, list), f"special_tokens: {short(name)} is {short(entry)}", "ids")
        for token in ids:
            _token(token, f"special_tokens: {short(name)}", rows)
        lengths[name] = len(ids)
    total = 0
    for piece in pieces:
        kind = next(iter(piece), None) if isinstance(piece, Mapping) else None
        known = kind in ("SpecialToken", "Sequence") and isinstance(piece[kind], Mapping)
        _expect(known, f"post_processor: single has {short(piece)}", "SpecialToken, Sequence")
        name = piece[kind].get("id")
        if kind == "SpecialToken":
            _expect(isinstance(name, str) and name in lengths,
                    f"post_processor: {short(name)} is not among special_tokens", "it there")
            total += lengths[name]
    _expect(total <= MAX_SPECIAL, f"post_processor adds {total} tokens", f"up to {MAX_SPECIAL}")


def _check_model(model: Any, rows: int) -> None:
    kind = model.get("type") if isinstance(model, Mapping) else None
    _expect(kind == "BPE", f"model is {short(kind)}", "BPE")
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        # Dropout draws: the same words would have other tokens each time.
        _expect(not model.get(key), f"model: {key} is {short(model.get(key))}", "null")
    vocabulary = model.get("vocab")
    _expect(isinstance(vocabulary, Mapping) and bool(vocabulary),
            f"model: vocab is {short(vocabulary)}", "tokens and their ids")  # fmt: skip
    for token, number in vocabulary.items():
        if type(number) is not int or not 0 <= number < rows:
            _token(number, f"model: vocab: {short(token)}", rows)
    unknown = model.get("unk_token")
    _expect(unknown is None or isinstance(unknown, str) and unknown in vocabulary,
            f"model: unk_token is {short(unknown)}", "one of vocab, or null")  # fmt: skip


def _check_added(added: Any, rows: int) -> None:
    _expect(isinstance(added, list), f"added_tokens is {short(added)}", "a list")
    for entry in added:
        _expect(isinstance(entry, Mapping), f"added_tokens has {short(entry)}", "a mapping")
        _text(entry.get("content"), "added_tokens: content", MAX_TEXT)
        _token(entry.get("id"), f"added_tokens: {short(entry.get('content'))}", rows)


def _token(number: Any, where: str, rows: int) -> None:
    fits = type(number) is int and 0 <= number < rows
    _expect(fits, f"{where} has the id {short(number)}", f"0 to {rows - 1}, as the table has rows")


def _text(value: Any, where: str, longest: int, *, empty: bool = False) -> str:
    fits = isinstance(value, str) and len(value) <= longest and (empty or value != "")
    _expect(fits, f"{where} is {short(value)}", f"a text of up to {longest} characters")
    return value


def _expect(condition: bool, found: str, expected: str) -> None:
    if not condition:
        raise BundleError(f"{found}; expected {expected}")
