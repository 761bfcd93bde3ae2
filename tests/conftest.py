# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""For all tests: bundles of the oracle sets, each exported once, and signals as in a terminal."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest

# A job in the background ignores SIGINT, and what it starts inherits that: Ctrl-C could not be
# tested there.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ORACLES = Path(__file__).resolve().parent / "data" / "oracles"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Let workers share the suite: all graphs to one of them, the rest file by file beside it."""
    from xdist.scheduler import LoadScopeScheduling

    class OneGraphAtATime(LoadScopeScheduling):
        # Not `--dist loadgroup`: its groups are lost with pytest 9.2.
        def _split_scope(self, nodeid: str) -> str:
            return "graph" if nodeid.startswith("tests/graph/") else nodeid.split("::")[0]

    return OneGraphAtATime(config, log)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Programs loaded by the tests' own process share a pool that is set once, before the first."""
    if find_spec("executorch") is None:
        return
    from omni_ros.programs import set_threads

    set_threads(1)


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
            # No checkpoint of a π0 says how many heads its vision tower has.
            arch = json.loads((ORACLES / name / "arch.json").read_text())
            heads = arch["tiny"].get("vis_heads") if name.startswith("pi0") else None
            export_checkpoint(ORACLES / name / "checkpoint", out, joints="raw", recipe=recipe,
                              vision_heads=heads, isolate=False)
        finally:
            torch.set_num_threads(threads)
        return out

    return export
