# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What nodes share: parameters."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from omni_ros.nodes._support import parse_cpus  # noqa: E402


@pytest.mark.parametrize(("text", "cpus"), [
    ("", []), (" ", []), ("3", [3]), ("2,3", [2, 3]), ("2-4", [2, 3, 4]), ("1, 3-4", [1, 3, 4])])
def test_cpus_are_read_singly_and_as_ranges(text, cpus):
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["a", "3-", "4-2", "-1", "1.5", "2;3"])
def test_cpus_written_otherwise_are_refused_with_how_to_write_them(text):
    with pytest.raises(ValueError, match="'2-3'"):
        parse_cpus(text)
