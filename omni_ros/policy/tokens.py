# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From a task in words to a fixed number of token ids and a mask.

The tokenizer is the `tokenizers` library reading the bundle's own file: nothing is fetched.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..requirements import require

_log = logging.getLogger(__name__)

#: PI05 writes the state as one of 256 bins of [-1, 1] per joint.
STATE_BINS = 256
_BIN_EDGES = np.linspace(-1.0, 1.0, STATE_BINS + 1)[:-1]


def newline_prompt(task: str) -> str:
    """SmolVLA's and PI0's prompt: the task, ended by one newline if it has none."""
    return task if task.endswith("\n") else f"{task}\n"


def state_prompt(task: str, state: np.ndarray, *, padded_width: int | None = None) -> str:
    """PI05's prompt: the task and the state in words.

    :param state: [n], normalised (so mostly within [-1, 1]). Outside that range a bin is not
        clipped: -1 below, 255 above, as in training.
    :param padded_width: zero-pad the state to this width first; LeRobot 0.4 did, with 32.
    """
    state = np.asarray(state, np.float32)
    if padded_width is not None:
        state = np.pad(state, (0, padded_width - len(state)))
    bins = np.digitize(state, _BIN_EDGES) - 1
    words = task.strip().replace("_", " ").replace("\n", " ")
    return f"Task: {words}, State: {' '.join(map(str, bins))};\nAction: "


@dataclass(frozen=True)
class Tokens:
    """A prompt as a program takes it.

    :param ids: int64 [length]. :param mask: bool [length], True for what belongs to the prompt.
    :param count: entries in use. :param full_count: what the whole prompt would need.
    """

    ids: np.ndarray
    mask: np.ndarray
    count: int
    full_count: int

    @property
    def truncated(self) -> bool:
        """Whether the end of the prompt was cut off."""
        return self.full_count > self.count

    def trimmed(self) -> np.ndarray:
        """Return the ids in use, int64 [count]: what "longest" padding gives for one prompt."""
        return self.ids[self.mask]


class PromptTokenizer:
    """Tokenises prompts to a fixed length.

    Whether training padded to the maximum or to the longest of a batch makes no difference here:
    padding is masked and takes no position, so both are the same fixed length with a mask.
    """

    def __init__(self, file: Path | str, *, max_length: int, pad_token: int | str,
                 padding_side: str = "right", padding: str = "max_length") -> None:
        """
        :param file: ``tokenizer.json``. :param max_length: tokens of the program's input.
        :param pad_token: its id or text, see :func:`pad_token_of`.
        :param padding: the checkpoint's word, "max_length" or "longest"; checked, see above.
        :raises omni_ros.requirements.MissingDependency: no `tokenizers` library.
        :raises ValueError: the file is not a tokenizer, or a parameter is unknown.
        """
        if padding_side not in ("right", "left"):
            raise ValueError(f"padding_side is {padding_side!r}; expected 'right' or 'left'")
        if padding not in ("max_length", "longest"):
            raise ValueError(f"padding is {padding!r}; expected 'max_length' or 'longest'")
        if max_length < 1:
            raise ValueError(f"max_length is {max_length}; expected at least 1 token")
        self.file, self.max_length, self.padding_side = Path(file), max_length, padding_side
        if not self.file.is_file():
            raise ValueError(f"{self.file} is not there; expected a tokenizer.json of the bundle")
        library = require("tokenizers", "to turn the task into tokens")
        try:
            self._tokenizer = library.Tokenizer.from_file(str(self.file))
        except BaseException as error:
            _raise_unless_library(error)
            raise ValueError(f"{self.file} is no tokenizer ({error}); restore the file") from None
        # A file may carry settings of its own; these are ours.
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.pad_id = self.token_id(pad_token) if isinstance(pad_token, str) else int(pad_token)
        self._warned: str | None = None

    @property
    def vocabulary(self) -> int:
        """Number of ids; every id is below it (the embedding table may be larger)."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def token_id(self, text: str) -> int:
        """Return the id of one token, for example ``<image>``. :raises ValueError: unknown."""
        found = self._tokenizer.token_to_id(text)
        if found is None:
            raise ValueError(f"{self.file} has no token {text!r}; is it the checkpoint's own?")
        return found

    def __call__(self, prompt: str) -> Tokens:
        """Return the prompt's tokens, cut to `max_length` with a warning that has both numbers.

        :raises TypeError: not text. :raises ValueError: the library cannot turn it into tokens.
        """
        if not isinstance(prompt, str):
            raise TypeError(f"prompt is {type(prompt).__name__}; expected text")
        encoded = self._encode(prompt)
        full_count = len(encoded.ids)
        if full_count > self.max_length:
            self._warn(prompt, full_count)
            # Cut by the library, which keeps the special tokens that a template adds.
            self._tokenizer.enable_truncation(self.max_length)
            try:
                encoded = self._encode(prompt)
            finally:
                self._tokenizer.no_truncation()
        count = len(encoded.ids)
        if count > self.max_length:
            raise ValueError(
                f"{self.file} gives {count} tokens where {self.max_length} were asked for; restore "
                "the file"
            )
        where = slice(0, count) if self.padding_side == "right" else (
            slice(self.max_length - count, self.max_length))
        ids = np.full(self.max_length, self.pad_id, np.int64)
        mask = np.zeros(self.max_length, np.bool_)
        ids[where] = encoded.ids
        mask[where] = True
        return Tokens(ids, mask, count, full_count)

    def _encode(self, prompt: str) -> Any:
        try:
            return self._tokenizer.encode(prompt)
        except BaseException as error:
            _raise_unless_library(error)
            raise ValueError(
                f"{self.file} gives no tokens for {prompt[:80]!r} ({error}); use other words, or "
                "the backbone's own tokenizer"
            ) from None

    def _warn(self, prompt: str, full_count: int) -> None:
        if prompt == self._warned:
            return
        self._warned = prompt
        _log.warning(
            "the prompt has %d tokens, the policy takes %d: its end is cut off. Say the task in "
            "fewer words. Prompt: %.80r", full_count, self.max_length, prompt,
        )


def _raise_unless_library(error: BaseException) -> None:
    """Raise what is not the library's, which raises Exception, and panics: not even that."""
    own = isinstance(error, Exception) and not isinstance(error, MemoryError)
    if not own and type(error).__name__ != "PanicException":
        raise error


def pad_token_of(directory: Path | str) -> str:
    """Return the padding token that a tokenizer's folder names.

    :param directory: holds ``tokenizer_config.json`` (or ``special_tokens_map.json``).
    :raises ValueError: neither names one.
    """
    return _named_token(Path(directory), "pad_token")


def image_tokens_of(directory: Path | str) -> tuple[str, str]:
    """Return the texts of the two special tokens SmolVLA may put around a picture.

    With ``add_image_special_tokens`` a camera's tokens are preceded by the embeddings of (first,
    second) and followed by that of the first. They are no part of the prompt.
    """
    directory = Path(directory)
    return (_named_token(directory, "fake_image_token"),
            _named_token(directory, "global_image_token"))


def _named_token(directory: Path, key: str) -> str:
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        file = directory / name
        if not file.is_file():
            continue
        value = json.loads(file.read_text(encoding="utf-8")).get(key)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            return value
    raise ValueError(
        f"no {key} in {directory}/tokenizer_config.json or special_tokens_map.json; give the "
        "folder that the checkpoint's backbone was published in"
    )
