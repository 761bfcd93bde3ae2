# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from omni_ros.bundles import BundleError, measure

PROGRAMS = Path(__file__).resolve().parents[1] / "data" / "programs"
pytestmark = pytest.mark.usefixtures("executorch")


def test_the_memory_of_a_program_is_measured_in_a_process_of_its_own():
    footprint = measure(PROGRAMS / "slow.pte")
    # Its activations are 4096 x 64 floats.
    assert 1 << 20 < footprint.workspace_bytes < 64 << 20
    assert footprint.peak_bytes >= footprint.workspace_bytes
    assert footprint.arenas == (0,)


def test_a_file_that_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(BundleError, match="nothing.pte: cannot be opened"):
        measure(tmp_path / "nothing.pte")
