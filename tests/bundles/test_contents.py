# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that would move a robot wrongly are refused when a bundle is opened."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from omni_ros.bundles import BundleError, open_bundle, read_manifest
from omni_ros.bundles.contents import check_table, open_table
from omni_ros.bundles.layout import Embeddings

pytestmark = pytest.mark.usefixtures("executorch")


@pytest.mark.parametrize(("statistics", "words"), [
    ({"std": [float("nan"), 1]}, "std is not finite for shoulder"),
    ({"std": [float("inf"), 1]}, "std is not finite for shoulder"),
    ({"std": [1, 1e39]}, "std is not finite for gripper"),
    ({"std": [1, 1e30]}, "std is 1e+30 for gripper; expected at most 1e+09"),
    ({"mean": [-1e12, 0]}, "mean is -1e+12 for shoulder"),
    ({"std": [0, 1]}, "std is 0 for shoulder"),
    ({"std": [1, 5e-8]}, "std is 5e-08 for gripper"),
    ({"std": [-1, 1]}, "std is below 0 for shoulder"),
    ({"std": [1]}, "std is [1]; expected [2]"),
    ({"std": [[1, 1]]}, "std is [[1, 1]]; expected a list of numbers"),
    ({"std": ["1", "1"]}, "std is ['1', '1']; expected a list of numbers"),
    ({"std": [True, True]}, "expected a list of numbers"),
    ({"std": 1}, "std is 1; expected a list of numbers"),
    ({"std": [10**400, 1]}, "holds no statistics"),
])
@pytest.mark.parametrize("feature", ["observation.state", "action"])
def test_statistics_no_robot_should_move_by_are_refused(bundle, sign, feature, statistics, words):
    path = bundle / "statistics.json"
    content = json.loads(path.read_text())
    content[feature].update(statistics)
    path.write_text(json.dumps(content))
    sign(bundle)
    with pytest.raises(BundleError) as caught:
        open_bundle(bundle, trial=False)
    assert str(caught.value).startswith(f"{path}: ")
    assert feature in str(caught.value) and words in str(caught.value)


@pytest.mark.parametrize("text", [
    "{}", "[]", "3", "[" * 200_000, '{"action": ' + "9" * 6000 + "}", '{"action": 5}', "\udcff",
], ids=["empty", "a list", "a number", "deep", "long", "no mapping", "no text"])
def test_a_file_that_holds_no_statistics_is_refused(bundle, sign, text):
    path = bundle / "statistics.json"
    path.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    sign(bundle)
    with pytest.raises(BundleError) as caught:
        open_bundle(bundle, trial=False)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(("dtype", "stored", "value"), [
    ("float32", np.float32, np.nan), ("float16", np.float16, np.inf),
    ("bfloat16", np.uint16, 0x7F80), ("bfloat16", np.uint16, 0xFFC1),
])
def test_a_token_table_that_is_not_finite_is_refused_with_the_row(
    bundle, sign, dtype, stored, value
):
    table = np.zeros((2, 8), stored)
    table[1, 5] = value
    np.save(bundle / "embeddings.npy", table)
    embeddings = Embeddings("embeddings.npy", dtype, 2, 8)
    sign(bundle, lambda manifest: dataclasses.replace(manifest, embeddings=embeddings))
    with pytest.raises(BundleError, match=r"embeddings\.npy: row 1 holds values that are not fini"):
        open_bundle(bundle)


def test_every_row_of_a_long_table_is_looked_at(bundle, tmp_path):
    table = np.zeros((300_000, 8), np.float32)
    table[-1, -1] = np.inf
    np.save(tmp_path / "table.npy", table)
    manifest = dataclasses.replace(
        read_manifest(bundle), embeddings=Embeddings("table.npy", "float32", 300_000, 8)
    )
    with pytest.raises(BundleError, match="row 299999 "):
        check_table(tmp_path / "table.npy", manifest)


def test_a_table_whose_header_lies_is_refused(tmp_path):
    path = tmp_path / "table.npy"
    np.save(path, np.zeros((2, 8), np.float32))
    path.write_bytes(path.read_bytes().replace(b"(2, 8), ", b"(-2, 8),"))
    with pytest.raises(BundleError, match="table.npy: is no readable .npy file"):
        open_table(path, dtype="float32", rows=2, width=8)
