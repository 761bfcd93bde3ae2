# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The one way to open a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omni_ros.bundles.bundle import Bundle
from omni_ros.bundles.errors import MemoryShortage
from omni_ros.bundles.kinds import kind_of
from omni_ros.bundles.manifest import read_manifest
from omni_ros.bundles.memory import check_memory
from omni_ros.bundles.trial import try_programs
from omni_ros.bundles.verify import verify_files


def open_bundle(
    folder: str | Path, *, programs: Sequence[str] | None = None, reserve: int = 0,
    trial: bool = True, timeout_s: float = 300.0,
) -> Bundle:
    """Verify a bundle and return it. Whatever is in the folder, this process lives.

    In order: the manifest, the memory it needs, the other files, the statistics, then in a process
    that may die of it the tokenizer's first words and each program's first load and golden vector.

    :param programs: those that will be loaded; None for all. Memory is checked for, and the last
        step done with, no others.
    :param reserve: bytes of memory that shall be left over.
    :param trial: whether to do the last step; without it a file that was made to do harm, and
        signed, is loaded unseen.
    :param timeout_s: for the last step.
    :raises BundleError: the first fault, as one line that names the file and the fact.
    :raises MemoryShortage: the programs do not fit; with need and have.
    :raises ImportError: what is needed to run programs is not installed; with what to type.
    """
    root = Path(folder)
    manifest = read_manifest(root)
    try:
        check_memory(manifest, programs=programs, reserve=reserve)
    except MemoryShortage as error:
        raise MemoryShortage(f"{root}: {error}") from None
    verify_files(root, manifest)
    bundle = Bundle(root, manifest)
    kind_of(manifest.family).contents(bundle)
    if trial:
        try_programs(bundle, programs, timeout_s=timeout_s)
    return bundle
