# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How far a long command has come."""

from __future__ import annotations

from omni_ros.cli import progress


def test_off_a_terminal_progress_comes_as_lines_with_minutes_and_share(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bar = progress.Bar()
    bar.show(0.0, "too early")
    now[0] += 75.0
    bar.show(0.5, "step 12 flow 0.300")
    bar.line("10.0 min: touch 98%")
    err = capsys.readouterr().err
    assert "too early" not in err and "\r" not in err
    assert " 50 %  1:15  step 12 flow 0.300\n" in err
    assert "[1:15] 10.0 min: touch 98%\n" in err
