# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from omni_ros.cli import bench_results


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Where results of benches are kept during a test: nowhere near the user's own."""
    folder = tmp_path / "results"
    monkeypatch.setattr(bench_results, "folder", lambda: folder)
    return folder
