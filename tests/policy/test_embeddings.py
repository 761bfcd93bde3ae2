# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of the token table, whatever it is stored as."""

from __future__ import annotations

import numpy as np
import pytest

from omni_ros.policy.embeddings import TokenTable

VALUES = np.array([[0.5, -1.0], [1.5, 2.0], [-3.0, 0.25]], np.float32)  # exact in every dtype


def stored(dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        return (VALUES.view(np.uint32) >> 16).astype(np.uint16)
    return VALUES.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_rows_come_as_float32_in_the_order_of_the_ids(tmp_path, dtype):
    np.save(tmp_path / "table.npy", stored(dtype))
    table = TokenTable(tmp_path / "table.npy", dtype=dtype, rows=3, width=2, count=4)
    out = np.empty((4, 2), np.float32)
    table.look_up(np.array([2, 0, 0, 1]), out)
    assert np.array_equal(out, VALUES[[2, 0, 0, 1]])


@pytest.mark.parametrize("ids", [[0, 3], [-1, 0]])
def test_an_id_that_the_table_does_not_have_is_refused(tmp_path, ids):
    np.save(tmp_path / "table.npy", VALUES)
    table = TokenTable(tmp_path / "table.npy", dtype="float32", rows=3, width=2, count=2)
    with pytest.raises(ValueError, match="rows 0 to 2"):
        table.look_up(np.array(ids), np.empty((2, 2), np.float32))


def test_a_table_of_another_shape_is_refused_with_both(tmp_path):
    np.save(tmp_path / "table.npy", VALUES)
    with pytest.raises(ValueError, match=r"float32 \[3, 2\], the manifest says float32 \[4, 2\]"):
        TokenTable(tmp_path / "table.npy", dtype="float32", rows=4, width=2, count=2)


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "table.npy").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no readable .npy file"):
        TokenTable(tmp_path / "table.npy", dtype="float32", rows=3, width=2, count=2)
