# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The error of a robot YAML that cannot be used."""

from __future__ import annotations

from typing import Iterable


class RobotConfigError(ValueError):
    """A robot YAML is wrong; the text says what was given, what was expected, what to write."""


def known(names: Iterable[str]) -> str:
    """Words for 'use one of these'."""
    return "known are " + ", ".join(names)
