# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which programs of a bundle are loaded with their weights in common."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from omni_ros.bundles.bundle import shares_weights


def entry(file: str, recipe: str = "fp32") -> SimpleNamespace:
    return SimpleNamespace(file=file, recipe=recipe)


@pytest.mark.parametrize(("recipe", "shared"), [
    ("fp32", True), ("int8", True), ("int4", True),
    # Fixed ranges are packed with the weights; two methods have two sets of them.
    ("conv8", False),
])
def test_methods_of_one_file_share_weights_that_are_the_same_in_both(recipe, shared):
    one, other, alone = entry("a.pte", recipe), entry("a.pte", recipe), entry("b.pte", recipe)
    manifest = SimpleNamespace(programs={"one": one, "other": other, "alone": alone})
    assert shares_weights(manifest, one) is shared
    assert shares_weights(manifest, alone) is False
