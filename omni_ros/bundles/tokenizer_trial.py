# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A tokenizer's first load and first words. For a process that may die of them."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.tokenizer_rules import check_rules

#: Seconds of computing, whatever else the machine does: the largest vocabularies take two.
LIMIT_S = 30
#: What instructions can be like, and what they should not be.
PROBES = (
    "", "\n", "a", "pick up the red cube and place it in the bin\n", "PICK 3 of 12, then 4.5 m!\n",
    "nimm den großen Würfel\n", "赤い箱を取って\n", "\U0001f916 \u200d\u0301\ufeff\n",
    "a\0b\t\r\n", "<image><|im_end|></s><pad>\n", " " * 300, "a" * 2000, "go on " * 400,
)


def try_tokenizer(path: Path, *, max_length: int, rows: int) -> None:
    """Check a tokenizer.json, load it, and turn some texts into tokens.

    What takes too long ends this process.

    :param max_length: tokens of a prompt. :param rows: of the token table.
    :raises BundleError: it is not taken, does not load, or gives other tokens than the table has.
    """
    check_rules(path, rows=rows)
    try:
        library = import_module("tokenizers")
    except ImportError:
        return  # whoever needs tokens says so, with what to install
    with _time_limit(LIMIT_S):
        try:
            tokenizer = library.Tokenizer.from_file(str(path))
            tokenizer.no_padding()
            tokenizer.enable_truncation(max_length)
            found = [tokenizer.encode(text).ids for text in PROBES]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # what panics there is no Exception here
            reason = " ".join(str(error).split())[:200]
            raise BundleError(
                f"{path}: is no tokenizer that can be used ({reason}); give the backbone's own"
            ) from None
    for text, ids in zip(PROBES, found, strict=True):
        if len(ids) > max_length:
            raise BundleError(
                f"{path}: gives {len(ids)} tokens for {text[:40]!r}, cut to {max_length}"
            )
        if any(not 0 <= token < rows for token in ids):
            raise BundleError(
                f"{path}: gives tokens from {min(ids)} to {max(ids)} for {text[:40]!r}; the table "
                f"has the rows 0 to {rows - 1}"
            )


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(time.process_time()) + seconds
    if before[1] != resource.RLIM_INFINITY:
        limit = min(limit, before[1])
    resource.setrlimit(resource.RLIMIT_CPU, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, before)
