# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib.metadata
import shutil

import pytest

from omni_ros.programs import NativeLibraryError, build, native, wheel
from omni_ros.requirements import MissingDependency


def test_without_the_wheel_the_error_says_what_to_type(monkeypatch):
    def missing(name: str):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(wheel.metadata, "distribution", missing)
    with pytest.raises(MissingDependency, match="Type: pip install"):
        wheel.find_wheel()


def test_a_wheel_without_libraries_is_refused_with_its_version(monkeypatch, tmp_path):
    class Old:
        version = "1.0.0"

        def locate_file(self, path):
            return tmp_path / path

    monkeypatch.setattr(wheel.metadata, "distribution", lambda name: Old())
    with pytest.raises(MissingDependency, match=r"1\.0\.0 has no lib/libexecutorch\.so"):
        wheel.find_wheel()


def test_without_cmake_the_error_says_what_to_type(monkeypatch, tmp_path):
    monkeypatch.setenv("OMNI_ROS_CACHE", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(NativeLibraryError, match="apt install cmake"):
        build.build()


def test_without_a_compiler_the_error_says_what_to_type(monkeypatch, tmp_path):
    monkeypatch.setenv("OMNI_ROS_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", str(tmp_path / "no-such-compiler"))
    with pytest.raises(NativeLibraryError, match=r"apt install g\+\+"):
        build.build()


def test_a_library_is_built_once_and_fits_the_wheel(monkeypatch, tmp_path):
    monkeypatch.setenv("OMNI_ROS_CACHE", str(tmp_path))
    found = wheel.find_wheel()
    path = build.build(found)
    assert found.version in path.parent.name
    assert native._fits(path, found)
    assert not native._fits(path, wheel.Wheel(found.root, "0.0.0"))
    changed = path.stat().st_mtime_ns
    assert build.build(found) == path
    assert path.stat().st_mtime_ns == changed


def test_the_library_records_no_path_of_the_machine_that_built_it():
    library = build.build()
    assert str(wheel.find_wheel().root).encode() not in library.read_bytes()
