# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The error of a robot YAML that cannot be used."""

from __future__ import annotations

import math
from typing import Any, Iterable


class RobotConfigError(ValueError):
    """A robot YAML is wrong; the text says what was given, what was expected, what to write."""


def known(names: Iterable[str]) -> str:
    """Words for 'use one of these'."""
    return "known are " + ", ".join(names)


def shown(given: Any) -> str:
    """Show a value in at most a line."""
    try:
        text = repr(given)
    except ValueError:  # an integer of thousands of digits
        text = "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_finite(given: Any) -> bool:
    """True for a number, not a bool, that a float can hold and that is neither NaN nor infinite."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return False
    try:
        return math.isfinite(given)
    except OverflowError:
        return False
