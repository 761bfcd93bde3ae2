# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a bundle: which names are allowed, and what lies in the folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from omni_ros.bundles.errors import BundleError, short

_MAX_NAME = 200


def check_paths(paths: Iterable[str], reserved: str) -> None:
    """Check the file names of a manifest.

    :param reserved: a name that none may have.
    :raises BundleError: one is absolute, leaves the folder, is not plainly written, or differs from
        another only by case.
    """
    seen: dict[str, str] = {}
    for path in paths:
        _check_path(path)
        folded = path.casefold()
        if folded in (reserved, seen.get(folded) and folded):
            other = seen.get(folded, reserved)
            raise BundleError(f"files has {short(path)} beside {short(other)}; names must differ "
                              "by more than case")  # fmt: skip
        seen[folded] = path


def _check_path(path: str) -> None:
    def refuse(why: str) -> BundleError:
        return BundleError(f"files has the name {short(path)}, which {why}")

    if not path or len(path) > _MAX_NAME:
        raise refuse(f"is not 1 to {_MAX_NAME} characters long")
    if not path.isprintable():
        raise refuse("contains a character that cannot be printed")
    if path.startswith(("/", "~")) or "\\" in path or ":" in path:
        raise refuse("is not relative to the bundle's folder, written with /")
    for part in path.split("/"):
        if part in ("", ".", ".."):
            raise refuse(f"contains the part {part!r}")


def check_folder(root: Path, expected: set[str]) -> None:
    """Check that a folder holds exactly the expected files, each a regular one inside it.

    Symbolic links are followed to files that lie inside the folder, nowhere else.

    :raises BundleError: the folder or a file is missing, unasked for, of another kind, or outside.
    """
    if not root.is_dir():
        raise BundleError(f"{root}: is no folder")
    real_root = os.path.realpath(root)
    found = set()
    for path in _walk(root, ""):
        if path not in expected:
            raise BundleError(f"{root / path}: is not named in the manifest; remove it")
        found.add(path)
        full = root / path
        target = os.path.realpath(full)
        if os.path.commonpath([real_root, target]) != real_root:
            raise BundleError(f"{full}: is a symbolic link to a place outside the bundle")
        if not full.is_file():
            raise BundleError(f"{full}: is no regular file")
    missing = sorted(expected - found)
    if missing:
        raise BundleError(f"{root / missing[0]}: is missing")


def _walk(root: Path, prefix: str) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(root / prefix), key=lambda entry: entry.name)
        folders = [entry.is_dir(follow_symlinks=False) for entry in entries]
    except OSError as error:
        raise BundleError(f"{root / prefix}: cannot be read ({error.strerror})") from error
    for entry, is_folder in zip(entries, folders, strict=True):
        if is_folder:
            yield from _walk(root, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name
