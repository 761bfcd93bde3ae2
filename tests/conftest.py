# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Bundles of the oracle sets, each exported once a session: lowering takes its time."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

ORACLES = Path(__file__).resolve().parent / "data" / "oracles"


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return the bundle of a set and recipe, exported with `joints="raw"`; not to be changed."""
    torch = pytest.importorskip("torch")
    for module in ("executorch.exir", "safetensors", "tokenizers"):
        pytest.importorskip(module)

    @lru_cache
    def export(name: str = "smolvla_given", recipe: str = "fp32") -> Path:
        from omni_ros.models.export.bundle import export_checkpoint

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            out = tmp_path_factory.mktemp("bundles") / f"{name}_{recipe}.bundle"
            export_checkpoint(ORACLES / name / "checkpoint", out, joints="raw", recipe=recipe,
                              isolate=False)
        finally:
            torch.set_num_threads(threads)
        return out

    return export
