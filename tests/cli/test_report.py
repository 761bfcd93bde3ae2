# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Findings and tables as text."""

from __future__ import annotations

import io

import pytest
from omni_ros.cli.report import (
    NOTE,
    OK,
    PROBLEM,
    Finding,
    format_findings,
    format_table,
    wants_colour,
    write,
)

LONG = "a fact that is rather long and goes on, with numbers like 12345678 and words, " * 3
FINDINGS = [
    Finding("First", "short", OK, "a fact"),
    Finding("First", "a long subject", NOTE, LONG, "do this: sudo apt install something"),
    Finding("Second", "other", PROBLEM, "broken", "mend it " * 20),
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_terminal(width):
    text = format_findings(FINDINGS, width=width)
    assert max(map(len, text.splitlines())) <= width


def test_sections_are_headed_once_and_every_finding_keeps_mark_fact_and_advice():
    text = format_findings(FINDINGS)
    lines = text.splitlines()
    assert lines.count("First") == 1 and lines.count("Second") == 1
    assert any("problem" in line and "broken" in line for line in lines)
    assert "-> do this: sudo apt install something" in text
    assert " ".join(LONG.split()) in " ".join(text.split())


def test_colour_adds_nothing_but_escape_codes():
    import re

    plain = format_findings(FINDINGS, colour=False)
    coloured = format_findings(FINDINGS, colour=True)
    assert "\x1b[" not in plain and "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_colour_is_wanted_only_on_a_terminal_without_no_color(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal()) and not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())


def test_what_the_terminal_cannot_show_is_replaced_and_not_an_error():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write("Größe 5 µm", stream)
    stream.flush()
    assert stream.buffer.getvalue() == b"Gr??e 5 ?m\n"


def test_table_columns_line_up():
    rows = [("idle", "1.25"), ("a longer one", "10.50")]
    lines = format_table(("name", "p99"), rows).splitlines()
    assert lines[0].endswith("  p99") and lines[2].endswith(" 1.25") and lines[3].endswith("10.50")
    assert len({len(line) for line in lines}) == 1
