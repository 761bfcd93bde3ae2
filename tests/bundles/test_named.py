# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Bundles by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from omni_ros.bundles import BundleError
from omni_ros.bundles.named import bundle_folder, bundle_folders


def make_bundle(folder: Path, name: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "bundle.yaml").write_text("")
    return folder / name


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNI_ROS_BUNDLES", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_first_folder_that_has_the_name_wins(folders):
    make_bundle(folders / "second", "arm")
    wanted = make_bundle(folders / "first", "arm")
    assert bundle_folder("arm") == wanted


def test_a_users_own_folder_is_searched_last(folders):
    wanted = make_bundle(folders / "data" / "omni_ros" / "bundles", "own")
    assert bundle_folder("own") == wanted
    assert bundle_folders()[-1] == wanted.parent


def test_a_path_is_taken_as_it_is(folders):
    wanted = make_bundle(folders / "elsewhere", "arm")
    assert bundle_folder(str(wanted)) == wanted


def test_a_folder_here_needs_no_slash(folders):
    make_bundle(folders, "here.bundle")
    assert bundle_folder("here.bundle") == Path("here.bundle")


def test_a_name_that_is_not_there_lists_those_that_are(folders):
    make_bundle(folders / "first", "left")
    make_bundle(folders / "second", "right")
    with pytest.raises(BundleError, match=r"'middle'; known: left, (\w+, )*right[,;]"):
        bundle_folder("middle")


def test_a_path_that_is_not_there_is_refused(folders):
    with pytest.raises(BundleError, match="no such folder"):
        bundle_folder("./gone")


@pytest.mark.parametrize("empty", ["", "  "])
def test_no_name_at_all_is_refused(empty):
    with pytest.raises(BundleError, match="no bundle was given"):
        bundle_folder(empty)
