# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The one error of the loaders."""

from __future__ import annotations


class CheckpointError(ValueError):
    """A checkpoint that can not be taken as it is: what was found, expected, and what to do."""


def listed(names, limit: int = 8) -> str:
    """Join names for an error message; say how many were left out."""
    names = sorted(names)
    text = ", ".join(names[:limit])
    return text if len(names) <= limit else f"{text} and {len(names) - limit} more"
