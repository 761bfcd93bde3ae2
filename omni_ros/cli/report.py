# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Findings and tables on a terminal: plain text, colour only where it is wanted."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

OK = "ok"
NOTE = "note"
PROBLEM = "problem"

_COLOURS = {OK: "32", NOTE: "33", PROBLEM: "1;31", "heading": "1"}
_MAX_WIDTH = 100


@dataclass(frozen=True)
class Finding:
    """One fact about the machine.

    :param section: the heading it stands under.
    :param subject: what it is about, at most about 14 characters.
    :param mark: OK, NOTE (works, but worth knowing) or PROBLEM (something is broken).
    :param fact: what was found, with numbers.
    :param advice: what to do, "" if nothing.
    """

    section: str
    subject: str
    mark: str
    fact: str
    advice: str = ""


def wants_colour(stream: TextIO) -> bool:
    """Return whether to colour what goes to `stream`: only a terminal, unless NO_COLOR is set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(getattr(stream, "isatty", lambda: False)())


def terminal_width() -> int:
    """Return the columns to write in: 80 where there is no terminal."""
    return max(60, min(_MAX_WIDTH, shutil.get_terminal_size((80, 24)).columns))


def paint(text: str, style: str, colour: bool) -> str:
    """Return `text` in the colour of a mark or of a "heading"."""
    return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if colour else text


def format_findings(findings: Iterable[Finding], *, width: int = 80, colour: bool = False) -> str:
    """Return findings as a table, grouped by section in the order given."""
    findings = list(findings)
    subject_width = max((len(finding.subject) for finding in findings), default=0)
    mark_width = len(PROBLEM)
    indent = " " * (2 + mark_width + 2 + subject_width + 2)
    lines: list[str] = []
    section = None
    for finding in findings:
        if finding.section != section:
            section = finding.section
            lines += ["", paint(section, "heading", colour)]
        mark = paint(f"{finding.mark:<{mark_width}}", finding.mark, colour)
        first = f"{finding.subject:<{subject_width}}"
        body = _wrap(finding.fact, width - len(indent)) or [""]
        lines.append(f"  {mark}  {first}  {body[0]}")
        lines += [indent + text for text in body[1:]]
        if finding.advice:
            advice = _wrap(finding.advice, width - len(indent) - 3)
            lines += [indent + ("-> " if i == 0 else "   ") + text for i, text in enumerate(advice)]
    return "\n".join(lines[1:])


def _wrap(text: str, width: int) -> list[str]:
    # Commands and paths are left whole, so that they can be copied.
    return textwrap.wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False)


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a ruled header: the first column to the left, the others to the right."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        cells_in_line = (f"{cell:{'>' if i else '<'}{widths[i]}}" for i, cell in enumerate(row))
        lines.append("  ".join(cells_in_line))
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(lines)


def write(text: str, stream: TextIO | None = None) -> None:
    """Print text, replacing what the terminal's encoding does not have."""
    stream = sys.stdout if stream is None else stream
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
