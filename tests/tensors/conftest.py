# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Rings in a folder of the test's own, so that nothing else is swept or counted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from omni_ros.tensors import TensorRing


@pytest.fixture
def make_ring(tmp_path: Path) -> Iterator[Callable[..., TensorRing]]:
    """Return a function that makes a ring in the test's folder; closed at the end."""
    rings = []

    def make(slots: int = 3, slot_bytes: int = 256, what: str = "test") -> TensorRing:
        rings.append(
            TensorRing.create(what, slots=slots, slot_bytes=slot_bytes, folder=tmp_path)
        )
        return rings[-1]

    yield make
    for ring in rings:
        ring.close()


@pytest.fixture
def spec() -> Callable[..., SimpleNamespace]:
    """Return a function that describes a tensor."""

    def describe(name: str, shape: tuple[int, ...], dtype: str = "float32") -> SimpleNamespace:
        return SimpleNamespace(name=name, shape=shape, dtype=dtype)

    return describe


@pytest.fixture
def start_python() -> Iterator[Callable[..., subprocess.Popen]]:
    """Return a function that starts a script in a process of its own; killed at the end."""
    started = []

    def start(script: str, *arguments: object) -> subprocess.Popen:
        started.append(subprocess.Popen(
            [sys.executable, "-P", "-c", script, *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            pipe.close()
