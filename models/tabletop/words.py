# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The tokenizer: byte-level pairs learnt from the sentences of training, so any text has tokens."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from omni_ros.policy.tokens import newline_prompt
from omni_ros.requirements import require
from omni_ros.world.tasks import COLOURS, SKILLS, Task, phrase, phrases

PAD = "<|pad|>"
#: Letters of made-up words: what a sentence holds besides its task must not matter.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def train_tokenizer(file: Path, vocabulary: int) -> None:
    """Write tokenizer.json and tokenizer_config.json."""
    library = require("tokenizers", "to train the policy's tokenizer")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.normalizer = library.normalizers.Lowercase()
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=[PAD], show_progress=False,
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
    )
    sentences = [
        newline_prompt(sentence)
        for skill in SKILLS for colour in COLOURS for sentence in phrases(Task(skill, colour))
    ]
    tokenizer.train_from_iterator(sentences, trainer)
    file.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(file))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": PAD,
                "padding_side": "right"}
    file.with_name("tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


class Sentences:
    """Draws sentences and turns them into ids."""

    def __init__(self, file: Path, length: int) -> None:
        """:param length: longest prompt, tokens."""
        library = require("tokenizers", "to read the policy's tokenizer")
        self._tokenizer = library.Tokenizer.from_file(str(file))
        self._length = length
        self._known: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a task in words."""
        if text not in self._known:
            ids = self._tokenizer.encode(newline_prompt(text)).ids[: self._length]
            if len(self._known) > 5000:
                return ids
            self._known[text] = ids
        return self._known[text]

    def draw(self, task: Task, random: np.random.Generator) -> list[int]:
        """Return the tokens of a sentence of training, at times with a word that means nothing."""
        text = phrase(task, random)
        if random.random() < 0.35:
            words = text.split()
            for _ in range(int(random.integers(1, 4))):
                word = "".join(random.choice(list(_LETTERS), size=int(random.integers(2, 7))))
                words.insert(int(random.integers(len(words) + 1)), word)
            return self._tokenizer.encode(newline_prompt(" ".join(words))).ids[: self._length]
        return self.ids(text)

    def batch(self, ids: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
        """Return ids int64 and mask bool, (n, longest)."""
        longest = max(map(len, ids))
        tokens = np.zeros((len(ids), longest), np.int64)
        mask = np.zeros((len(ids), longest), bool)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = one
            mask[row, : len(one)] = True
        return tokens, mask
