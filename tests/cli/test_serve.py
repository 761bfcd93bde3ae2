# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni serve`: what it refuses before anything is loaded. What it serves: tests/openpi."""

from __future__ import annotations

import pytest

from omni_ros.cli import main

REFUSED = {
    "token_file": ["--host", "0.0.0.0"],
    "--threads 0": ["--threads", "0"],
    "serve.port": ["--port", "70000"],
    "--max-request-mb inf": ["--max-request-mb", "inf"],
    "--max-request-mb nan": ["--max-request-mb", "nan"],
    "belong together": ["--cert", "a.pem"],
    "there is no bundle": ["--port", "0"],
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_served_is_refused_at_once(text, capsys):
    assert main.main(["serve", "/nowhere/x.bundle", *REFUSED[text]]) == 2
    assert text in capsys.readouterr().err


def test_its_help_says_that_it_stays_on_this_machine(capsys):
    assert main.main(["serve", "--help"]) == 0
    assert "127.0.0.1, this machine" in " ".join(capsys.readouterr().out.split())
