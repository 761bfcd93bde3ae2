# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One self-contained page: text, figures and pictures in a single file, readable on a phone."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from omni_ros.report.style import FAINT, INK, QUIET, VERDICTS

_STYLE = f"""
:root {{ color-scheme: light; }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 46rem; padding: 1.2rem 1rem 3rem; background: #fff;
  color: {INK}; font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
h1 {{ font-size: 1.45rem; line-height: 1.25; margin: .2rem 0 .4rem; }}
h2 {{ font-size: 1.1rem; margin: 2.2rem 0 .5rem; }}
p {{ margin: .4rem 0; }}
.quiet {{ color: {QUIET}; font-size: .85rem; overflow-wrap: anywhere; }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .6rem;
  margin: 1rem 0; }}
.tile {{ border: 1px solid {FAINT}; border-radius: .5rem; padding: .6rem .7rem; }}
.tile b {{ display: block; font-size: 1.25rem; line-height: 1.3; }}
.tile span {{ color: {QUIET}; font-size: .82rem; }}
img {{ display: block; width: 100%; height: auto; margin: .6rem 0; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-size: .9rem; }}
th, td {{ text-align: left; padding: .35rem .5rem .35rem 0; border-bottom: 1px solid {FAINT};
  vertical-align: top; }}
th {{ color: {QUIET}; font-weight: 600; }}
""" + "\n".join(f".{name} {{ color: {colour}; font-weight: 600; }}"
                for name, colour in VERDICTS.items())


@dataclass(frozen=True)
class Table:
    """Rows of text; a cell whose text is a verdict's name is coloured."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """The bytes of a PNG file, and what it shows, for those who cannot see it."""

    png: bytes
    alt: str


@dataclass(frozen=True)
class Section:
    """A heading, a sentence about it, then tables and pictures."""

    heading: str
    text: str
    parts: Sequence[Table | Picture] = ()


def page(
    title: str, lead: str, tiles: Sequence[tuple[str, str]], sections: Sequence[Section],
    footer: str,
) -> str:
    """Return the page as HTML text; everything given is text and is escaped.

    :param tiles: (figure, what it is), the few that matter most.
    """
    body = [f"<h1>{escape(title)}</h1>", f"<p>{escape(lead)}</p>", '<div class="tiles">']
    body += [f'<div class="tile"><b>{escape(figure)}</b><span>{escape(what)}</span></div>'
             for figure, what in tiles]
    body.append("</div>")
    for section in sections:
        body += [f"<h2>{escape(section.heading)}</h2>", f"<p>{escape(section.text)}</p>"]
        body += [_table(part) if isinstance(part, Table) else _picture(part)
                 for part in section.parts]
    body.append(f'<p class="quiet">{escape(footer)}</p>')
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    return (f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{rows}\n</tbody></table></div>")


def _cell(text: str) -> str:
    word = text.partition(" ")[0].rstrip(":,")
    style = f' class="{word}"' if word in VERDICTS else ""
    return f"<td{style}>{escape(text)}</td>"


def _picture(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode("ascii")
    return f'<img alt="{escape(picture.alt)}" src="data:image/png;base64,{data}">'
