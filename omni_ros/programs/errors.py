# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a program; each message says which file and what to change."""

from __future__ import annotations


class ProgramError(ValueError):
    """A program cannot be loaded, an array does not fit it, or a run failed."""


class NativeLibraryError(ImportError):
    """The library over the executorch wheel is not there, cannot be built, or does not load."""
