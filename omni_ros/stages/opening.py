# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A bundle as one stage opens it: everything is verified, one program will be loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omni_ros.bundles import Bundle, manifest_hash, memory_left, open_bundle, try_programs
from omni_ros.bundles.memory import memory_of


@dataclass(frozen=True)
class Opened:
    """A bundle that may be loaded from.

    :param sha256: of its manifest, by which stages know each other's bundle.
    :param need: bytes that the stage's program takes. :param have: bytes that were left, None if
        the kernel does not tell.
    """

    bundle: Bundle
    sha256: str
    need: int
    have: int | None


#: Manifests whose programs this process has all tried.
_tried: set[str] = set()


def open_stage(folder: str | Path, program: str, *, together: bool = False) -> Opened:
    """Verify a bundle and return it, if its program `program` fits into memory.

    :param together: the other stages run in this process too: the first one to come tries all
        programs at once, so that the process is up sooner.
    :raises BundleError: the bundle is at fault. :raises MemoryShortage: with need and have in MB.
    """
    root, have = Path(folder), memory_left()
    bundle = open_bundle(root, programs=(program,), trial=not together)
    sha256 = manifest_hash(root)
    if together and sha256 not in _tried:
        try_programs(bundle)
        _tried.add(sha256)
    return Opened(bundle, sha256, memory_of(bundle.manifest, (program,)).total, have)
