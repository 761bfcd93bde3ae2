# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni demo` over the real graph, with the scripted expert in the place of a policy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from omni_ros.cli.processes import stop_tree

pytest.importorskip("mujoco")
pytest.importorskip("matplotlib")
String = pytest.importorskip("std_msgs.msg").String

PATIENCE_S = 120.0
#: One instruction of the demonstration: the one that is changed midway.
ONE_STEP = """
import sys
from omni_ros.cli import demo_instructions
from omni_ros.cli.main import main
demo_instructions.STEPS = [step for step in demo_instructions.STEPS if step.before]
sys.exit(main(["demo", *sys.argv[1:]]))
"""


@pytest.fixture
def demo(ros_domain, tmp_path):
    """Start the demonstration; what it says goes to a file."""
    started = []

    def start(*words: str):
        said = tmp_path / "said"
        with said.open("w") as sink:
            started.append(subprocess.Popen(
                [sys.executable, "-P", "-c", ONE_STEP, "--report", f"{tmp_path}/report", *words],
                stdout=sink, stderr=subprocess.STDOUT, start_new_session=True))
        return started[-1], said

    yield start
    for process in started:
        stop_tree(process)


def test_the_arm_turns_to_what_it_is_told_midway_and_the_report_shows_it(demo, tmp_path, graph):
    words = graph.record(String, "say")
    process, said = demo("--policy", "expert")
    process.wait(PATIENCE_S)
    text = said.read_text()
    assert "touch the yellow block ... touch the green block  success" in text
    facts = json.loads((tmp_path / "report" / "facts.json").read_text())
    assert facts["succeeded"] == 1 and facts["latencies"]["to_command_p50"] > 0.0
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.count("data:image/png") == 4
    assert [word.data for word in words.messages] == [
        "I will touch the yellow block.", "No. I will touch the green block.", "Done."]
    # Missed ticks are the machine's affair, and make the status 1.
    assert process.returncode == (1 if 100 * facts["missed"] > facts["ticks"] else 0), text


def test_the_scripted_demonstration_needs_no_policy(demo, tmp_path):
    process, said = demo("--policy", "scripted", "--seconds", "2")
    process.wait(PATIENCE_S)
    assert "The arm followed its chunks for 2 s." in said.read_text()
    assert (tmp_path / "report" / "trace.png").is_file()
