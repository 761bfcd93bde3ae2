# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint says about its prompt: tokenizer files, length, padding, newline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import CheckpointError, listed
from .fields import Fields
from .steps import NEWLINE
from .weights import read_json

#: More than any prompt that a policy was trained with.
MOST_TOKENS = 4096


@dataclass(frozen=True)
class Tokenizer:
    """How text becomes token ids. `padding` only says what LeRobot did: here padding is masked."""

    folder: Path | None  # holds tokenizer.json; None if no local copy was found
    name: str  # what the checkpoint calls it
    max_length: int
    padding: str  # "max_length" or "longest"
    newline: bool  # a task gets a newline at its end if it has none

    def marks(self) -> tuple[tuple[int, int], tuple[int]]:
        """Return ids of the tokens before and after an image."""
        if self.folder is None:
            raise CheckpointError(
                f"add_image_special_tokens needs the tokenizer of {self.name!r} for its token ids; "
                "pass backbone=DIR, a local copy of its config.json and tokenizer files"
            )
        fake = self.token_id("fake_image_token", "<fake_token_around_image>")
        return (fake, self.token_id("global_image_token", "<global-img>")), (fake,)

    def token_id(self, role: str, usual: str) -> int:
        """Return the id of a special token by its role in the tokenizer's config."""
        assert self.folder is not None
        config = {}
        for file in ("tokenizer_config.json", "special_tokens_map.json"):
            if (self.folder / file).is_file():
                config = {**read_json(self.folder / file), **config}
        token = config.get(role, usual)
        if isinstance(token, Mapping):
            token = token.get("content")
        path = self.folder / "tokenizer.json"
        listing = read_json(path).get("added_tokens", [])
        entries = listing if isinstance(listing, list) else []
        added = [entry for entry in entries if isinstance(entry, Mapping)]
        for entry in added:
            if entry.get("content") == token and type(entry.get("id")) is int:
                return entry["id"]
        raise CheckpointError(
            f"{path}: {role} {token!r} is not among added_tokens "
            f"({listed(str(entry.get('content')) for entry in added)}); give the backbone's own "
            "tokenizer files"
        )


@dataclass(frozen=True)
class PromptDefaults:
    """What a family's releases without processor files did.

    :param newline: the step that ends a task with a newline; None where there is none.
    """

    newline: str | None = NEWLINE
    length: int = 48
    padding: str = "longest"
    name: str = ""


def read_tokenizer(
    fields: Fields, steps: Mapping[str, Mapping[str, Any]] | None, backbone: Path | None,
    defaults: PromptDefaults = PromptDefaults(),
) -> Tokenizer:
    """Take the prompt's rules from the preprocessor, else (older releases) from config.json."""
    said = fields.whole("tokenizer_max_length", defaults.length, high=MOST_TOKENS)
    values = {
        "max_length": said,
        "padding": fields.values.get("pad_language_to", defaults.padding),
        "padding_side": "right", "truncation": True, "task_key": "task",
        "tokenizer_name": fields.values.get("vlm_model_name", defaults.name),
    }
    newline = defaults.newline is not None  # releases without processor files always added it
    if steps is not None:
        if "tokenizer_processor" not in steps:
            raise CheckpointError(
                "policy_preprocessor.json has no tokenizer_processor: expected one among "
                f"{listed(steps)}"
            )
        step = steps["tokenizer_processor"].get("config", {})
        values.update({key: step[key] for key in values if step.get(key) is not None})
        newline = defaults.newline in steps
    for key, expected in (("padding_side", "right"), ("truncation", True), ("task_key", "task")):
        if values[key] != expected:
            raise CheckpointError(
                f"tokenizer_processor: {key} is {values[key]!r}: expected {expected!r}"
            )
    if values["padding"] not in ("max_length", "longest"):
        raise CheckpointError(
            f"tokenizer_processor: padding is {values['padding']!r}: expected 'max_length' or "
            "'longest'"
        )
    length = Fields(values, "tokenizer_processor" if steps else fields.where).whole(
        "max_length", high=MOST_TOKENS
    )
    found = backbone if backbone is not None and (backbone / "tokenizer.json").is_file() else None
    return Tokenizer(found, str(values["tokenizer_name"]), length,
                     str(values["padding"]), newline)
