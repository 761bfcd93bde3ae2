# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Trying a library in a process of its own."""

from __future__ import annotations

import os

from omni_ros.cli.children import child_environment, try_python


def test_the_output_of_a_child_that_ends_well_is_returned():
    outcome = try_python("print('fine')")
    assert outcome.ok and outcome.output == "fine" and outcome.error == ""


def test_an_exception_is_told_by_its_last_line():
    outcome = try_python("import no_such_module_at_all")
    assert not outcome.ok and outcome.error.startswith("ModuleNotFoundError")


def test_a_child_that_crashes_is_told_by_its_signal():
    outcome = try_python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert not outcome.ok and outcome.error == "ended by SIGSEGV"


def test_a_child_that_hangs_is_ended():
    outcome = try_python("import time; time.sleep(60)", timeout=0.5)
    assert not outcome.ok and "0.5 s" in outcome.error


def test_a_child_imports_the_same_omni_ros():
    import omni_ros

    outcome = try_python("import omni_ros; print(omni_ros.__file__)")
    assert os.path.samefile(outcome.output, omni_ros.__file__)


def test_the_present_folder_does_not_shadow_what_is_installed(tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise RuntimeError('the wrong numpy')")
    monkeypatch.chdir(tmp_path)
    assert try_python("import numpy").ok


def test_paths_of_the_user_stay_in_front(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/first:/second")
    assert child_environment()["PYTHONPATH"].startswith("/first:/second")
