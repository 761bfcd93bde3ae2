# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Roots with the /proc and /sys of other machines, recorded ones and made-up ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from omni_ros.telemetry.hardware import Hardware, read_hardware

RECORDED = Path(__file__).resolve().parents[1] / "data" / "sysfs"
_RANGE = re.compile(r"\{(\d+)-(\d+)\}")
CPU = "sys/devices/system/cpu/"


@pytest.fixture
def write_tree(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Write {path: text} below a root, `{0-3}` in a path standing for each number."""

    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            found = _RANGE.search(name)
            numbers = range(int(found[1]), int(found[2]) + 1) if found else [None]
            for n in numbers:
                path = tmp_path / (name if n is None else _RANGE.sub(str(n), name))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.replace("{n}", str(n)))
        return tmp_path

    return write


@pytest.fixture
def recorded(write_tree: Callable[..., Path]) -> Callable[..., Hardware]:
    """Read a machine of tests/data/sysfs, with some of its files changed."""

    def read(name: str, changed: Mapping[str, str] | None = None) -> Hardware:
        files = yaml.safe_load((RECORDED / name / "tree.yaml").read_text())
        write_tree(files)
        return read_hardware(write_tree(changed or {}))

    return read


@pytest.fixture
def made_up(write_tree: Callable[..., Path]) -> Callable[..., Hardware]:
    """Read a machine of so many cores, each of so many hardware threads (core c: cpus c, c + n)."""

    def read(cores: int, threads: int = 1, files: Mapping[str, str] | None = None) -> Hardware:
        last = cores * threads - 1
        tree = {CPU + "online": f"0-{last}", CPU + "possible": f"0-{last}",
                "proc/self/status": f"Cpus_allowed_list:\t0-{last}\n"}
        for cpu in range(cores * threads):
            siblings = ",".join(str(cpu % cores + cores * t) for t in range(threads))
            tree[CPU + f"cpu{cpu}/topology/core_cpus_list"] = siblings
            tree[CPU + f"cpu{cpu}/topology/physical_package_id"] = "0"
        return read_hardware(write_tree({**tree, **(files or {})}))

    return read
