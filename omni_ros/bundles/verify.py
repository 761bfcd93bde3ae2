# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Is every file of a bundle the one that the manifest means? Nothing is loaded to find out."""

from __future__ import annotations

import hashlib
from pathlib import Path

from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.layout import FileEntry, Manifest
from omni_ros.bundles.manifest import MANIFEST, read_manifest
from omni_ros.bundles.paths import check_folder

_BLOCK = 1 << 20
_PROGRAM_MAGIC = b"ET12"


def verify_files(folder: str | Path, manifest: Manifest | None = None) -> Manifest:
    """Check that a folder holds exactly the files of its manifest: names, sizes, SHA-256, magic.

    :param manifest: if it was read already.
    :return: the manifest.
    :raises BundleError: the first fault, as one line that names the file and the fact.
    """
    root = Path(folder)
    manifest = manifest or read_manifest(root)
    check_folder(root, {MANIFEST, *manifest.files})
    # Sizes first: they cost nothing, and a cut file is the commonest fault.
    for path, entry in manifest.files.items():
        found = (root / path).stat().st_size
        if found != entry.bytes:
            raise BundleError(
                f"{root / path}: has {found} bytes, expected {entry.bytes}; copy the bundle again"
            )
    for path, entry in manifest.files.items():
        _check_hash(root / path, entry)
    for program in manifest.programs.values():
        _check_magic(root / program.file)
    return manifest


def file_entry(path: Path) -> FileEntry:
    """Return what the manifest says about a file."""
    return FileEntry(sha256=_sha256(path), bytes=path.stat().st_size)


def _check_hash(path: Path, entry: FileEntry) -> None:
    try:
        found = _sha256(path)
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror})") from error
    if found != entry.sha256:
        raise BundleError(
            f"{path}: has SHA-256 {found[:16]}..., expected {entry.sha256[:16]}...: it was changed "
            "or damaged; copy the bundle again"
        )


def _check_magic(path: Path) -> None:
    with open(path, "rb") as file:
        head = file.read(8)
    if head[4:8] != _PROGRAM_MAGIC:
        raise BundleError(
            f"{path}: is no ExecuTorch program: bytes 4 to 7 are {head[4:8].hex(' ') or 'missing'},"
            f" expected {_PROGRAM_MAGIC.hex(' ')} ({_PROGRAM_MAGIC.decode()})"
        )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    block = bytearray(_BLOCK)
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(block):
            digest.update(memoryview(block)[:count])
    return digest.hexdigest()
