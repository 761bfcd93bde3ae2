# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench tabletop` over the real graph, with the scripted expert in the place of a policy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from omni_ros.cli.processes import find_descendant, stop_tree
from omni_ros.cli.tabletop_trials import FIRST_SEED

pytest.importorskip("mujoco")

PATIENCE_S = 120.0


@pytest.fixture
def bench(ros_domain, tmp_path):
    """Start the bench; what it says goes to a file, so that it never waits for a reader."""
    started = []

    def start(*words: str) -> tuple[subprocess.Popen, Path]:
        command = [sys.executable, "-P", "-m", "omni_ros.cli.main", "bench", "tabletop", "--expert",
                   "--domain", str(ros_domain), *words]
        said = tmp_path / "said"
        with said.open("w") as sink:
            process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT,
                                       start_new_session=True)
        started.append(process)
        return process, said

    yield start
    for process in started:
        stop_tree(process)


def test_the_expert_does_what_the_sentence_says_and_every_episode_is_written_down(bench, tmp_path):
    process, said = bench("--episodes", "2", "--horizon", "8", "--json", f"{tmp_path}/out.json")
    assert process.wait(PATIENCE_S) == 0, said.read_text()
    found = json.loads((tmp_path / "out.json").read_text())
    (expert,) = found["sources"]
    counts = expert["skills"]["touch"]["verdict"]
    assert counts["tries"] == 2 and counts["success"] >= 1 and counts["wrong"] == 0
    assert [row["seed"] for row in found["runs"][0]["episodes"]] == [FIRST_SEED, FIRST_SEED + 1]
    assert expert["to_command"]["p50"] > 0.0 and expert["chunk_rate_hz"] > 0.5
    assert found["horizon"] == 8 and found["trouble"] is None and found["provenance"]["cpu"]


def test_a_node_that_dies_ends_the_bench_which_names_it_and_shows_what_was_measured(bench, tools):
    process, said = bench("--episodes", "500", "--horizon", "8")
    tools.eventually(lambda: str(FIRST_SEED + 1) in said.read_text(), "the second episode", PATIENCE_S)
    os.kill(find_descendant(process.pid, "action_player"), signal.SIGKILL)
    assert process.wait(PATIENCE_S) == 1
    text = said.read_text()
    assert "action_player died (exit code -9)" in " ".join(text.split())
    assert "CUT SHORT" in text and "Rates: count" in text
