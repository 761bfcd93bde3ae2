# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A tiny checkpoint to export with every fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

ORACLES = Path(__file__).resolve().parents[1] / "data" / "oracles"


@pytest.fixture
def tiny(tmp_path) -> Path:
    """A checkpoint of random weights, beside its backbone's folder."""
    pytest.importorskip("torch")
    for module in ("executorch.exir", "safetensors"):
        pytest.importorskip(module)
    from omni_ros.models.smolvla.random_checkpoint import write_checkpoint

    (tmp_path / "made").mkdir()
    return write_checkpoint(tmp_path / "made", tokenizer=ORACLES / "smolvla_given" / "vlm")


@pytest.fixture
def export(tiny, tmp_path) -> Callable[..., object]:
    """Export it to tmp_path/out, here in this process."""
    from omni_ros.models.export.bundle import export_checkpoint

    def export(checkpoint: Path = tiny, **options):
        options = {"joints": "raw", "isolate": False, **options}
        return export_checkpoint(checkpoint, tmp_path / "out", **options)

    return export


@pytest.fixture
def oracles() -> Path:
    """The folder of the oracle sets."""
    return ORACLES
