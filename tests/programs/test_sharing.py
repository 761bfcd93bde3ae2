# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Programs loaded with their weights shared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("executorch")

from omni_ros.programs import Program, zeros

DATA = Path(__file__).resolve().parents[1] / "data" / "programs"


def answers(program: Program, name: str) -> list[np.ndarray]:
    with np.load(DATA / f"{name}.npz") as stored:
        given = {key: stored[key] for key in stored.files}
    for index, spec in enumerate(program.inputs):
        array = zeros(spec.shape, spec.dtype)
        array[...] = np.resize(np.concatenate([v.ravel() for v in given.values()]), spec.shape)
        program.bind(index, array)
    program.run()
    return [program.output(index).copy() for index in range(len(program.outputs))]


def test_a_program_that_shares_its_weights_answers_as_one_that_does_not():
    plain, shared, again = (
        Program(DATA / "mlp.pte", share_weights=share) for share in (False, True, True))
    wanted = answers(plain, "mlp")
    for program in (shared, again):
        for ours, theirs in zip(answers(program, "mlp"), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    # The second one's weights outlive the first one.
    shared.close()
    for ours, theirs in zip(answers(again, "mlp"), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


_GROWTH = """
import sys
from omni_ros.programs import Program

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

kept = [Program(sys.argv[1], share_weights=sys.argv[2] == "1")]
before = resident()
kept += [Program(sys.argv[1], share_weights=sys.argv[2] == "1") for _ in range(8)]
print(resident() - before)
"""


def growth(path: Path, share: bool) -> int:
    words = [sys.executable, "-P", "-c", _GROWTH, str(path), str(int(share))]
    return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def test_eight_more_of_the_same_program_take_less_memory_if_weights_are_shared():
    apart, shared = (growth(DATA / "slow.pte", share) for share in (False, True))
    # Measured: 12.5 and 9.3 MB, most of it no weights.
    assert apart - shared > 1_600_000
