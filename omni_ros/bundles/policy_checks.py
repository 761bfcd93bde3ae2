# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the manifest and the files of a policy's bundle must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.layout import JointName, Manifest
from omni_ros.bundles.names import check_unique
from omni_ros.bundles.sizes import check_sizes

if TYPE_CHECKING:
    from omni_ros.bundles.bundle import Bundle


def named(manifest: Manifest) -> dict[str, str]:
    """Return the files that are named, by the place."""
    return {
        "tokenizer.file": manifest.tokenizer.file,
        "embeddings.file": manifest.embeddings.file,
        "normalisation.file": manifest.normalisation.file,
    }


def check(manifest: Manifest) -> None:
    """Check names, joints and sizes. :raises BundleError: they do not fit."""
    check_unique([camera.name for camera in manifest.cameras], "cameras")
    for key, joints, width in (
        ("joints", manifest.joints, manifest.dimensions.action),
        ("state_joints", manifest.state_joints, manifest.dimensions.state),
    ):
        _check_joints(key, joints, width)
    check_sizes(manifest)


def contents(bundle: Bundle) -> None:
    """Look at the statistics. :raises BundleError: no robot should be moved by them."""
    from omni_ros.bundles.contents import read_statistics

    for feature in ("state", "action"):
        path = bundle.path(bundle.manifest.normalisation.file)
        read_statistics(path, bundle.manifest, feature)


def _check_joints(key: str, joints: tuple[JointName, ...] | str, width: int) -> None:
    if isinstance(joints, str):
        if joints != "raw":
            raise BundleError(f"{key} is {short(joints)}, expected a list or raw")
        return
    check_unique([joint.name for joint in joints], key)
    if len(joints) != width:
        kind = "action" if key == "joints" else "state"
        raise BundleError(f"{key} has {len(joints)} names, dimensions.{kind} is {width}")
