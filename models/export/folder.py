# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Write a folder as a whole or not at all, whoever else writes one of the same name."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omni_ros.bundles.manifest import MANIFEST

_NOREPLACE, _EXCHANGE = 1, 2
_AT_FDCWD = -100
#: What a file system answers that cannot rename so.
_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


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

    Whatever ends the writing early, an interrupt included, leaves `out` as it was and nothing else;
    what a process left that was killed is removed by the next one. A bundle that is replaced is
    there at every moment, the old one or the new.
    """
    check_target(out, force=force)
    out = out.absolute()
    sweep(out)
    made, lock = _make(out)
    try:
        yield made
        for path in sorted(made.rglob("*")):
            _flush(path)
        _flush(made)
        _put(made, out, force=force)
        _flush(out.parent)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def sweep(out: Path) -> None:
    """Remove what processes left beside `out` that ended while they wrote it."""
    ours = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{16}}\.(partial|old)")
    for path in out.parent.iterdir():
        if not ours.fullmatch(path.name):
            continue
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            # Whoever writes it holds it, and nobody can who is dead.
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(handle)


def _make(out: Path) -> tuple[Path, int]:
    """Make a folder that nobody sweeps away, and return the handle that keeps it so."""
    name = f".{out.name}.{secrets.token_hex(8)}"
    fresh, made = out.with_name(f"{name}.new"), out.with_name(f"{name}.partial")
    fresh.mkdir()
    lock = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(fresh, made)
    return made, lock


def _put(made: Path, out: Path, *, force: bool) -> None:
    """Let `made` be `out`; what was `out` is `made` then."""
    for _ in range(100):
        check_target(out, force=force)
        swap = os.path.lexists(out)
        try:
            _rename(made, out, _EXCHANGE if swap else _NOREPLACE)
            return
        except FileNotFoundError:
            if not swap:
                raise
        except FileExistsError:
            pass  # another was faster: whether it may be replaced is for check_target to say
        except OSError as error:
            if error.errno not in _UNABLE:
                raise
            return _put_in_two_steps(made, out)
    raise ValueError(f"{out}: other processes keep putting it there and away; end them")


def _put_in_two_steps(made: Path, out: Path) -> None:
    """Where a file system cannot exchange two names: one process after the other."""
    parent = os.open(out.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(parent, fcntl.LOCK_EX)
        if not out.exists():
            os.rename(made, out)
            return
        old = made.with_suffix(".old")
        os.rename(out, old)
        try:
            os.rename(made, out)
        except BaseException:
            os.rename(old, out)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        os.close(parent)


def _rename(source: Path, target: Path, flags: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = os.fsencode(source), os.fsencode(target)
    if library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], flags):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def _flush(path: Path) -> None:
    """Have a file or folder on the disk before it gets the name that vouches for it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
