# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with Qwen3-TTS at run time."""

from __future__ import annotations


class CodesError(ValueError):
    """Codec frames that cannot be voiced; the message says what is odd about them."""


class TalkerError(RuntimeError):
    """A talker could not be loaded, or a step of it failed."""


class ContextFull(TalkerError):
    """The talker has no position left: the text must go on in a new context."""
