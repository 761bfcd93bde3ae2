# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The small programs of tests/data/programs, loaded and bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from omni_ros.programs import Program, get_threads, set_threads, zeros

DATA = Path(__file__).resolve().parents[1] / "data" / "programs"


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    try:
        metadata.distribution("executorch")
    except metadata.PackageNotFoundError:
        pytest.skip("executorch is not installed")
    # Whoever loads first in this process decides; results do not depend on it.
    if get_threads() != 1:
        try:
            set_threads(1)
        except ValueError:
            pass


@dataclass
class Loaded:
    """A program, its recorded inputs (bound) and the outputs recorded for them."""

    program: Program
    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]


@pytest.fixture
def load() -> Iterator[Callable[[str], Loaded]]:
    programs = []

    def load(name: str) -> Loaded:
        with np.load(DATA / f"{name}.npz") as stored:
            arrays = {key: stored[key] for key in stored.files}
        inputs = {k.removeprefix("inputs."): v for k, v in arrays.items() if k[:2] == "in"}
        outputs = {k.removeprefix("outputs."): v for k, v in arrays.items() if k[:2] == "ou"}
        program = Program(DATA / f"{name}.pte", inputs=list(inputs), outputs=list(outputs))
        programs.append(program)
        bound = {}
        for key, value in inputs.items():
            bound[key] = zeros(value.shape, value.dtype)
            bound[key][...] = value
            program.bind(key, bound[key])
        return Loaded(program, bound, outputs)

    yield load
    for program in programs:
        program.close()


@pytest.fixture
def data() -> Path:
    return DATA
