# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between two stages. All of it means: count, drop, take the next observation."""

from __future__ import annotations


class TensorError(Exception):
    """A tensor cannot be handed on, or not be used."""


class RingError(TensorError, OSError):
    """A ring cannot be made or mapped: no shared memory, too little of it, or the ring is gone."""


class HandleError(TensorError, ValueError):
    """A handle that does not say what it should; with what it says and what fits."""


class SlotOverwritten(TensorError):
    """The slot no longer holds what the handle named; nothing computed from it may be used."""
