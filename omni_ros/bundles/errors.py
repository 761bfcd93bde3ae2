# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a bundle: one line that names the file and the fact."""

from __future__ import annotations


class BundleError(ValueError):
    """A bundle is damaged, incomplete, foreign, or does not do what its manifest says."""


class MemoryShortage(BundleError):
    """The bundle needs more memory than this process can get."""


def short(value: object, length: int = 80) -> str:
    """Return a value for a message: on one line, cut where it is long."""
    text = repr(value)
    return text if len(text) <= length else text[: length - 3] + "..."
