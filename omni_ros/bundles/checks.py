# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the parts of a manifest must be to each other."""

from __future__ import annotations

import re

from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.layout import JointName, Manifest, Memory
from omni_ros.bundles.paths import check_paths
from omni_ros.bundles.sizes import check_sizes

_HASH = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")


def is_name(text: str) -> bool:
    """Whether a camera, a joint or a program can be called so."""
    return _NAME.fullmatch(text) is not None


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
    named = {
        "tokenizer.file": manifest.tokenizer.file,
        "embeddings.file": manifest.embeddings.file,
        "normalisation.file": manifest.normalisation.file,
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
    check_sizes(manifest)


def _check_names(manifest: Manifest) -> None:
    if not manifest.programs:
        raise BundleError("programs is empty")
    for name, entry in manifest.programs.items():
        for kind, tensors in (("inputs", entry.inputs), ("outputs", entry.outputs)):
            names = [tensor.name for tensor in tensors]
            _check_unique(names, f"programs.{name}.{kind}")
    for name in manifest.programs:
        if not _NAME.fullmatch(name):
            raise BundleError(f"programs has the name {short(name)}, expected letters and digits")
    _check_unique([camera.name for camera in manifest.cameras], "cameras")
    for key, joints, width in (
        ("joints", manifest.joints, manifest.dimensions.action),
        ("state_joints", manifest.state_joints, manifest.dimensions.state),
    ):
        _check_joints(key, joints, width)


def _check_joints(key: str, joints: tuple[JointName, ...] | str, width: int) -> None:
    if isinstance(joints, str):
        if joints != "raw":
            raise BundleError(f"{key} is {short(joints)}, expected a list or raw")
        return
    _check_unique([joint.name for joint in joints], key)
    if len(joints) != width:
        kind = "action" if key == "joints" else "state"
        raise BundleError(f"{key} has {len(joints)} names, dimensions.{kind} is {width}")


def _check_unique(names: list[str], where: str) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise BundleError(f"{where} has the name {short(name)}, expected letters and digits")
    if len(set(names)) != len(names):
        raise BundleError(f"{where} has a name twice: {', '.join(names)}")
