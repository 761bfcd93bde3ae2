# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a bundle as the host's arithmetic needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..bundles import Bundle, BundleError
from ..bundles.contents import read_statistics
from ..bundles.layout import Manifest
from ..programs import Program, zeros
from .conventions import Conventions
from .normalise import Normaliser
from .prefix import END_MARKS, START_MARKS, PrefixLayout
from .rope import RopeTable

#: Policies of three stages, and how each rounds rotary angles (see `rope`).
FAMILIES = {"smolvla": "timescale", "pi0": "frequency", "pi05": "frequency"}


def check_family(bundle: Bundle) -> Manifest:
    """Return the manifest. :raises BundleError: the bundle is of no policy of three stages."""
    if bundle.manifest.family not in FAMILIES:
        raise BundleError(
            f"{bundle.root}: family is {bundle.manifest.family!r}; expected one of "
            f"{', '.join(FAMILIES)}"
        )
    return bundle.manifest


def rope_table(manifest: Manifest, positions: int) -> RopeTable:
    """Return the rotary tables of a family, for positions from 0 on."""
    return RopeTable(positions, manifest.dimensions.head_dim, base=manifest.prefix.rope_base,
                     kind=FAMILIES[manifest.family])


def conventions_of(manifest: Manifest) -> Conventions:
    """Return what training did outside normalisation."""
    return Conventions(manifest.conventions.aloha, manifest.conventions.relative)


def prefix_layout(bundle: Bundle) -> PrefixLayout:
    """Return the layout of the prefix, whose sizes have to add up to the program's.

    :raises BundleError: they do not, or the marks are not known.
    """
    manifest = bundle.manifest
    sizes, prefix = manifest.dimensions, manifest.prefix
    marks = (prefix.start_marks, prefix.end_marks)
    if marks not in ((0, 0), (START_MARKS, END_MARKS)):
        raise BundleError(
            f"{bundle.root}: prefix has {marks[0]} marks before an image and {marks[1]} behind; "
            f"expected 0 and 0, or {START_MARKS} and {END_MARKS}"
        )
    layout = PrefixLayout(
        prefix.slots, sizes.image_tokens, sizes.language_tokens, special_tokens=marks != (0, 0),
        state=prefix.state == "prefix",
    )
    if layout.length != sizes.prefix:
        raise BundleError(
            f"{bundle.root}: dimensions.prefix is {sizes.prefix}; {prefix.slots} slots of "
            f"{layout.slot_length} tokens, {layout.language} of the prompt"
            f"{' and the state' * layout.state} make {layout.length}"
        )
    return layout


def normaliser(bundle: Bundle, feature: str) -> Normaliser:
    """Return the normaliser of "state" or "action".

    :raises BundleError: the statistics cannot be read, or no robot should be moved by them.
    """
    manifest = bundle.manifest
    path = bundle.path(manifest.normalisation.file)
    return Normaliser(
        getattr(manifest.normalisation, feature), read_statistics(path, manifest, feature),
        width=getattr(manifest.dimensions, feature), eps=manifest.normalisation.eps,
    )


def bind_zeros(program: Program, name: str) -> np.ndarray:
    """Bind a new array to an input and return it."""
    for spec in program.inputs:
        if spec.name == name:
            array = zeros(spec.shape, spec.dtype)
            program.bind(name, array)
            return array
    known = ", ".join(spec.name for spec in program.inputs)
    raise BundleError(f"{program.path}: has no input {name}; it has {known}")


def check_names(given: Mapping[str, np.ndarray], wanted: Iterable[str], who: str) -> None:
    """:raises ValueError: an array of keys or values is missing."""
    missing = [name for name in wanted if name not in given]
    if missing:
        raise ValueError(
            f"keys and values given: {', '.join(given) or 'none'}; {who} {', '.join(wanted)}: "
            f"{', '.join(missing)} missing"
        )
