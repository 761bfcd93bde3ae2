# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Random checkpoints are what LeRobot would save."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from omni_ros.models.smolvla.load import build, load_checkpoint  # noqa: E402
from omni_ros.models.smolvla.random_checkpoint import (  # noqa: E402
    REAL,
    tensor_shapes,
    write_checkpoint,
)


def test_the_real_size_is_the_advertised_one():
    shapes = list(tensor_shapes(REAL))
    assert len(shapes) == len(dict(shapes)) == 500
    assert sum(int(np.prod(shape)) for _, shape in shapes) == 450_046_176


def test_the_real_prefix_has_lerobots_length():
    assert 3 * REAL.image_tokens + REAL.language + 1 == 241


def test_a_tiny_one_loads_and_builds(tmp_path):
    checkpoint = load_checkpoint(write_checkpoint(tmp_path, cameras=2))
    model = build(checkpoint)
    assert model.slots == 2
    assert not any(parameter.is_meta for parameter in model.parameters())
    assert not any(buffer.is_meta for buffer in model.buffers())


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    files = [
        write_checkpoint(tmp_path / name, seed=seed) / "model.safetensors"
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    first, same, other = (path.read_bytes() for path in files)
    assert first == same and first != other
