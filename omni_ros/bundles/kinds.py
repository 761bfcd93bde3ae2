# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The families of bundles: what stands in the manifest of each, and what it must be.

A manifest is a dataclass. Of whatever family, it has family, name, programs, memory, files, golden,
tolerance and provenance, which are checked alike; the other fields are the family's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omni_ros.bundles import layout, piper_layout, policy_checks, qwen3_tts
from omni_ros.bundles.errors import BundleError, short

if TYPE_CHECKING:
    from omni_ros.bundles.bundle import Bundle


@dataclass(frozen=True)
class Kind:
    """What is special about a family.

    :param manifest: the dataclass of its bundle.yaml.
    :param named: returns the files that the family's own fields name, by the place in the manifest.
    :param check: raises BundleError if the family's own fields do not fit the rest.
    :param contents: looks into files that are no programs, when a bundle is opened.
    """

    manifest: type
    named: Callable[[Any], Mapping[str, str]]
    check: Callable[[Any], None]
    contents: Callable[[Bundle], None]


_POLICY = Kind(layout.Manifest, policy_checks.named, policy_checks.check, policy_checks.contents)

KINDS: Mapping[str, Kind] = {
    "smolvla": _POLICY,
    "pi0": _POLICY,
    "pi05": _POLICY,
    "piper": Kind(
        piper_layout.PiperManifest, piper_layout.named, piper_layout.check, piper_layout.contents
    ),
    "qwen3_tts": Kind(
        qwen3_tts.QwenManifest, qwen3_tts.named, qwen3_tts.check, qwen3_tts.contents
    ),
}


def kind_of(family: object) -> Kind:
    """Return what is known about a family.

    :raises BundleError: nothing is.
    """
    if not isinstance(family, str) or family not in KINDS:
        raise BundleError(
            f"family is {short(family)}, this version of omni_ros knows {', '.join(KINDS)}; export "
            "the bundle again or change the version"
        )
    return KINDS[family]
