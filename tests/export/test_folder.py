# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from omni_ros.models.export.folder import check_target, whole_folder


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def old(tmp_path):
    """A bundle that is there already."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "bundle.yaml").write_text("old")
    return folder


def test_a_folder_appears_when_it_is_whole(tmp_path):
    with whole_folder(tmp_path / "out") as made:
        (made / "bundle.yaml").write_text("new")
        assert not (tmp_path / "out").exists()
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "bundle.yaml").read_text() == "new"


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError])
def test_nothing_is_left_of_one_that_fails_half_way(tmp_path, error):
    with pytest.raises(error):
        with whole_folder(tmp_path / "out") as made:
            (made / "large.pte").write_text("half")
            raise error
    assert names(tmp_path) == []


def test_what_was_there_stays_if_its_replacement_fails(old, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        with whole_folder(old, force=True):
            raise KeyboardInterrupt
    assert names(tmp_path) == ["out"]
    assert (old / "bundle.yaml").read_text() == "old"


def test_a_bundle_is_replaced_when_asked_for(old, tmp_path):
    with whole_folder(old, force=True) as made:
        (made / "bundle.yaml").write_text("new")
    assert names(tmp_path) == ["out"]
    assert (old / "bundle.yaml").read_text() == "new"


def test_a_bundle_is_not_replaced_unasked(old):
    with pytest.raises(ValueError, match="is there already; pass --force"):
        check_target(old, force=False)


def test_one_that_appears_meanwhile_is_kept(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="is there already"):
        with whole_folder(out):
            out.mkdir()
    assert names(tmp_path) == ["out"]


def test_a_folder_that_is_no_bundle_is_never_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    with pytest.raises(ValueError, match="is no bundle"):
        check_target(tmp_path / "photos", force=True)


def test_a_parent_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="nowhere is no folder: make it first"):
        check_target(tmp_path / "nowhere" / "out", force=False)
