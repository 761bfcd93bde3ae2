# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The report's page: one file that needs no other, and says what it was given."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

from omni_ros.report.html import Picture, Section, Table, page


def made(**changes) -> str:
    parts = {"title": "Run", "lead": "It ran.", "tiles": [("7 of 8", "done")],
             "sections": [Section("Instructions", "In order.", [
                 Table(["sentence", "verdict"], [["touch the <red> block", "success"],
                                                 ["lift it", "wrong, touched block_red"]]),
                 Picture(b"\x89PNG...", 'what "it" saw')])],
             "footer": "omni_ros"}
    return page(**{**parts, **changes})


def test_text_is_escaped():
    html = made(title="a < b & c")
    assert "touch the &lt;red&gt; block" in html and "<title>a &lt; b &amp; c</title>" in html


def test_pictures_are_inside_the_page():
    source = re.search(r'src="data:image/png;base64,([^"]+)"', made())[1]
    assert base64.b64decode(source) == b"\x89PNG..."


def test_the_page_needs_nothing_from_elsewhere():
    assert not re.search(r"""(src|href)=["'](?!data:)|@import|url\(""", made())


def test_the_page_is_told_to_fit_a_phone():
    assert 'name="viewport" content="width=device-width' in made()


def test_verdicts_are_coloured_by_their_first_word():
    html = made()
    assert '<td class="success">success</td>' in html
    assert '<td class="wrong">wrong, touched block_red</td>' in html
    assert "<td>touch the &lt;red&gt; block</td>" in html


def test_every_tag_that_is_opened_is_closed():
    class Balance(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.problems = [], []

        def handle_starttag(self, tag, attrs):
            if tag not in ("meta", "img"):
                self.open.append(tag)

        def handle_endtag(self, tag):
            if not self.open or self.open.pop() != tag:
                self.problems.append(tag)

    balance = Balance()
    balance.feed(made())
    assert (balance.open, balance.problems) == ([], [])
