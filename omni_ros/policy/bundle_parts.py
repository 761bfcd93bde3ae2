# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a bundle as the host's arithmetic needs them."""

from __future__ import annotations

import numpy as np

from ..bundles import Bundle, BundleError
from ..bundles.contents import read_statistics
from ..bundles.layout import Manifest
from ..programs import Program, zeros
from .normalise import Normaliser
from .prefix import END_MARKS, START_MARKS, PrefixLayout

FAMILY = "smolvla"


def check_family(bundle: Bundle) -> Manifest:
    """Return the manifest. :raises BundleError: the bundle is of another family."""
    if bundle.manifest.family != FAMILY:
        raise BundleError(
            f"{bundle.root}: family is {bundle.manifest.family!r}; expected {FAMILY!r}"
        )
    return bundle.manifest


def prefix_layout(bundle: Bundle) -> PrefixLayout:
    """Return the layout of the prefix, whose sizes have to add up to the program's.

    :raises BundleError: they do not, or the marks are others than SmolVLA's.
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
        prefix.slots, sizes.image_tokens, sizes.language_tokens, special_tokens=marks != (0, 0)
    )
    if layout.length != sizes.prefix:
        raise BundleError(
            f"{bundle.root}: dimensions.prefix is {sizes.prefix}; {prefix.slots} slots of "
            f"{layout.slot_length} tokens, {layout.language} of the prompt and the state make "
            f"{layout.length}"
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
