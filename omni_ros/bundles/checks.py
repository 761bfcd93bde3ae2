# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the parts of a manifest must be to each other."""

from __future__ import annotations

import re

from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.kinds import kind_of
from omni_ros.bundles.layout import Manifest, Memory
from omni_ros.bundles.names import check_unique, is_name
from omni_ros.bundles.paths import check_paths

_HASH = re.compile(r"[0-9a-f]{64}")


def check(manifest: Manifest, reserved: str) -> None:
    """Check a manifest beyond the types of its values.

    :param reserved: the manifest's own name, which none of its files may have.
    :raises BundleError: they do not fit; the message has both sides.
    """
    _check_names(manifest)
    for path, entry in manifest.files.items():
        if not _HASH.fullmatch(entry.sha256):
            raise BundleError(f"files[{short(path)}].sha256 is {short(entry.sha256)}, "
                              "expected 64 hexadecimal digits")  # fmt: skip
    check_paths(manifest.files, reserved)
    kind = kind_of(manifest.family)
    named = {
        **kind.named(manifest),
        **{f"programs.{name}.file": entry.file for name, entry in manifest.programs.items()},
        **{f"golden.{name}": file for name, file in manifest.golden.items()},
    }
    for place, file in named.items():
        if file not in manifest.files:
            raise BundleError(f"{place} is {short(file)}, which is not among files")
    if set(manifest.golden) != set(manifest.programs):
        raise BundleError(
            f"golden has {', '.join(manifest.golden) or 'nothing'}, expected one entry for each "
            f"program: {', '.join(manifest.programs)}"
        )
    summed = Memory.of(manifest.programs)
    if manifest.memory != summed:
        raise BundleError(f"memory is {manifest.memory}, but the programs add up to {summed}")
    kind.check(manifest)


def _check_names(manifest: Manifest) -> None:
    if not manifest.programs:
        raise BundleError("programs is empty")
    for name, entry in manifest.programs.items():
        for kind, tensors in (("inputs", entry.inputs), ("outputs", entry.outputs)):
            names = [tensor.name for tensor in tensors]
            check_unique(names, f"programs.{name}.{kind}")
    for name in manifest.programs:
        if not is_name(name):
            raise BundleError(f"programs has the name {short(name)}, expected letters and digits")
