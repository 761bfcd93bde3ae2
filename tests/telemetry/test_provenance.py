# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Where a figure comes from."""

from __future__ import annotations

import json
import subprocess

import omni_ros
import pytest
from omni_ros.telemetry import provenance as module
from omni_ros.telemetry.provenance import git_version, one_line, provenance


def test_the_provenance_survives_json():
    facts = provenance()
    assert json.loads(json.dumps(facts))["omni_ros"]["version"] == omni_ros.__version__


def test_the_line_names_package_processor_cores_and_python():
    facts = provenance()
    line = one_line(facts)
    assert "\n" not in line
    for text in (omni_ros.__version__, facts["cpu"], "cores", facts["python"], facts["time"]):
        assert text in line


def test_the_line_leaves_out_what_is_not_known():
    facts = provenance()
    facts["memory"]["total"] = None
    facts["load_average"] = None
    facts["omni_ros"]["git"] = None
    assert "GiB" not in one_line(facts) and "load" not in one_line(facts)


def test_versions_are_read_without_importing():
    import sys

    before = set(sys.modules)
    versions = module.package_versions()
    assert "numpy" in versions and not (set(sys.modules) - before) & {"torch", "mujoco"}


@pytest.fixture
def repository(tmp_path):
    def git(*words):
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)

    try:
        git("init", "-q")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("git is not there")
    git("config", "user.name", "x")
    git("config", "user.email", "x@example.org")
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("")
    return tmp_path, git


def test_a_source_tree_has_its_commit_and_says_when_it_was_changed(repository):
    folder, git = repository
    git("add", ".")
    git("commit", "-qm", "x")
    commit = git_version(folder / "package")
    assert commit and "dirty" not in commit
    (folder / "package/__init__.py").write_text("x = 1")
    assert git_version(folder / "package") == f"{commit}-dirty"


def test_an_installed_copy_inside_someone_elses_repository_has_no_commit(repository):
    folder, git = repository
    git("commit", "-qm", "x", "--allow-empty")
    assert git_version(folder / "package") is None


def test_without_git_there_is_no_commit_and_no_error(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_version() is None
