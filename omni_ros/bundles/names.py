# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What things in a manifest can be called."""

from __future__ import annotations

import re

from omni_ros.bundles.errors import BundleError, short

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")


def is_name(text: str) -> bool:
    """Whether a camera, a joint or a program can be called so."""
    return _NAME.fullmatch(text) is not None


def check_unique(names: list[str], where: str) -> None:
    """Refuse names that are none, or that stand twice. :raises BundleError: with the place."""
    for name in names:
        if not is_name(name):
            raise BundleError(f"{where} has the name {short(name)}, expected letters and digits")
    if len(set(names)) != len(names):
        raise BundleError(f"{where} has a name twice: {', '.join(names)}")
