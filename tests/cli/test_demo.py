# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni demo`: what it refuses and what it says of its picture; no graph is started here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from omni_ros.cli import UsageError, demo


def test_a_report_folder_that_cannot_be_made_is_refused_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--report .*file/report.*cannot be written"):
        demo._make_folder(tmp_path / "file" / "report")


def test_a_report_folder_that_cannot_be_written_is_refused_before_the_run():
    with pytest.raises(UsageError, match="--report /proc.*cannot be written"):
        demo._make_folder(Path("/proc"))


def test_the_report_folder_is_made_and_left_empty(tmp_path):
    demo._make_folder(tmp_path / "new" / "report")
    assert list((tmp_path / "new" / "report").iterdir()) == []


@pytest.mark.parametrize("written", [True, False])
def test_a_picture_is_named_only_if_it_was_written(tmp_path, monkeypatch, written):
    portrait = SimpleNamespace(trail_picture=lambda *_: np.zeros((2, 2, 3), np.uint8))
    monkeypatch.setitem(sys.modules, "omni_ros.world.portrait", portrait)
    monkeypatch.setattr(demo, "require", lambda *_: SimpleNamespace(imwrite=lambda *_: written))
    path, complaint = demo._draw({"joint_positions": np.zeros((1, 6)), "blocks": {}}, tmp_path)
    assert path == (tmp_path / "trace.png" if written else None)
    assert complaint == "" if written else "trace.png could not be written" in complaint
