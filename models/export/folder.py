# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Write a folder as a whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omni_ros.bundles.manifest import MANIFEST


def check_target(out: Path, *, force: bool) -> None:
    """Refuse a place that the new bundle can not or should not take.

    :raises ValueError: something is there already, or its parent is not.
    """
    if not out.name:
        raise ValueError(f"{out}: expected the path of a folder to be made")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"{out.absolute().parent} is no folder: make it first")
    if not os.path.lexists(out):
        return
    if not force:
        raise ValueError(f"{out} is there already; pass --force to replace it, or another --out")
    if out.is_symlink() or not (out / MANIFEST).is_file():
        raise ValueError(
            f"{out} is no bundle (it has no {MANIFEST}), so it is not replaced; pass another --out"
        )


@contextmanager
def whole_folder(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a folder beside `out` to write into; it becomes `out` if nothing goes wrong.

    Whatever ends the writing early, an interrupt included, leaves `out` as it was and nothing else.
    """
    check_target(out, force=force)
    out = out.absolute()
    made = out.with_name(f".{out.name}.{os.getpid()}.partial")
    made.mkdir()
    try:
        yield made
        for path in sorted(made.rglob("*")):
            _flush(path)
        _flush(made)
        check_target(out, force=force)
        if out.exists():
            old = out.with_name(f".{out.name}.{os.getpid()}.old")
            os.rename(out, old)
            try:
                os.rename(made, out)
            except BaseException:
                os.rename(old, out)
                raise
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(made, out)
        _flush(out.parent)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _flush(path: Path) -> None:
    """Have a file or folder on the disk before it gets the name that vouches for it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
