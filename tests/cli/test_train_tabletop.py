# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni train-tabletop`: what it refuses, and what it says while it works."""

from __future__ import annotations

import pytest

from omni_ros.cli.main import USAGE, main


@pytest.mark.parametrize(
    ("option", "value"), [("--minutes", "0"), ("--frames", "-3"), ("--threads", "0"),
                          ("--seed", "-1"), ("--steps", "-1")],
)
def test_a_number_that_makes_no_sense_is_refused_before_any_work(tmp_path, capsys, option, value):
    out = tmp_path / "run"
    assert main(["train-tabletop", "--out", str(out), option, value]) == USAGE
    assert option in capsys.readouterr().err
    assert not out.exists()


def test_without_a_folder_it_says_what_is_missing(capsys):
    assert main(["train-tabletop"]) == USAGE
    assert "--out" in capsys.readouterr().err
