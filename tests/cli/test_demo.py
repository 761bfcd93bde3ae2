# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni demo`: what it refuses, plans and launches; no graph is started here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from omni_ros.cli import UsageError, demo, demo_instructions, demo_scripted


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    demo.add_arguments(parser)
    return parser.parse_args(words)


def test_a_report_folder_that_cannot_be_made_is_refused_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--report .*file/report.*cannot be written"):
        demo.make_folder(tmp_path / "file" / "report")


def test_a_report_folder_that_cannot_be_written_is_refused_before_the_run():
    with pytest.raises(UsageError, match="--report /proc.*cannot be written"):
        demo.make_folder(Path("/proc"))


def test_the_report_folder_is_made_and_left_empty(tmp_path):
    demo.make_folder(tmp_path / "new" / "report")
    assert list((tmp_path / "new" / "report").iterdir()) == []


@pytest.mark.parametrize("written", [True, False])
def test_a_picture_is_named_only_if_it_was_written(tmp_path, monkeypatch, written):
    portrait = SimpleNamespace(trail_picture=lambda *_: np.zeros((2, 2, 3), np.uint8))
    monkeypatch.setitem(sys.modules, "omni_ros.world.portrait", portrait)
    monkeypatch.setattr(demo_scripted, "require", lambda *_: SimpleNamespace(imwrite=lambda *_: written))
    path, complaint = demo_scripted.draw({"joint_positions": np.zeros((1, 6)), "blocks": {}}, tmp_path)
    assert path == (tmp_path / "trace.png" if written else None)
    assert complaint == "" if written else "trace.png could not be written" in complaint


@pytest.mark.parametrize("words", [
    ["--seconds", "0"], ["--seed", "-1"], ["seed=3"], ["namespace:=left"],
    ["--policy", "expert", "use_sim_time:=true"],
])  # fmt: skip
def test_an_option_out_of_range_or_that_the_demonstration_sets_itself_is_refused(words):
    with pytest.raises(UsageError, match=words[-2] if words[0] == "--seconds" else words[-1]):
        demo.check(options(*words))


def test_the_scripted_demonstration_runs_in_any_namespace():
    demo.check(options("--policy", "scripted", "namespace:=left"))


def test_a_bundle_that_is_not_there_is_refused_before_the_run(tmp_path):
    with pytest.raises(ValueError, match="there is no bundle"):
        demo_instructions.launch_command(options("--bundle", f"{tmp_path}/none"))


def test_the_demonstration_launches_the_bundle_it_was_given(tmp_path):
    command = demo_instructions.launch_command(options("--bundle", f"{tmp_path}/", "log_level:=warn"))
    assert f"bundle:={tmp_path}" in command and command[-1] == "log_level:=warn"


def test_every_sentence_asks_for_what_it_is_judged_by():
    tasks = pytest.importorskip("omni_ros.world.tasks")
    for step in demo_instructions.STEPS:
        assert tasks.task_of(step.sentence) == tasks.Task(step.skill, step.colour)
        before = tasks.task_of(step.before) if step.before else None
        assert before != tasks.Task(step.skill, step.colour)


def test_one_instruction_is_changed_midway_to_another_colour():
    changed = [step for step in demo_instructions.STEPS if step.before]
    assert changed and all(step.colour not in step.before for step in changed)
