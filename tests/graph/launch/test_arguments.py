# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Arguments of the launch, and its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from omni_ros.msg import PlayerStatus  # noqa: E402


def alive_in_session(leader: int) -> list[str]:
    """Command lines of the processes that were started by a session's leader, itself excepted."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != leader:
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] != "Z":
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                pass  # it ended while being looked at
    return found


def test_a_dry_run_does_everything_but_move(graph, launch):
    launched = launch(graph, "dry_run:=true")
    launched.eventually(lambda: launched.state == PlayerStatus.STATE_PLAYING, "playing")
    assert launched.statuses.last.dry_run
    start = launched.position()
    time.sleep(1.0)
    assert not launched.commands
    assert np.abs(launched.position() - start).max() < 0.01


def test_simulated_time_of_the_world_moves_the_arm(graph, launch):
    launched = launch(graph, "use_sim_time:=true").until_moving()
    assert launched.statuses.last.header.stamp.sec < 1000  # since the world began, not since 1970
    start = launched.position()
    launched.eventually(lambda: np.abs(launched.position() - start).max() > 0.05, "motion")


@pytest.mark.parametrize("number, whom", [
    (signal.SIGINT, os.killpg),   # Ctrl-C: the terminal signals everyone
    (signal.SIGINT, os.kill),
], ids=["ctrl-c", "SIGINT"])
def test_a_signal_ends_everything_in_good_order(graph, launch, number, whom):
    launched = launch(graph).until_moving()
    whom(launched.process.popen.pid, number)
    status = launched.process.popen.wait(timeout=30)
    output = launched.process.output
    assert status == 0, output
    assert "Traceback" not in output and "has died" not in output, output
    assert not alive_in_session(launched.process.popen.pid)
    launched.eventually(launched.resting, "the arm commanded to rest", timeout_s=3.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_a_launch_that_dies_leaves_no_node_behind(graph, launch, number):
    launched = launch(graph).until_moving()
    os.kill(launched.process.popen.pid, number)
    launched.process.popen.wait(timeout=30)
    launched.eventually(lambda: not alive_in_session(launched.process.popen.pid), "no orphans")
    launched.eventually(launched.resting, "the arm commanded to rest", timeout_s=3.0)
    assert PlayerStatus.REASON_SHUTDOWN in launched.statuses.last.reasons


def test_ctrl_c_at_once_leaves_no_node_behind(graph, launch):
    # Python itself may still be starting, and shows a traceback then; that is not ours to prevent.
    launched = launch(graph)
    launched.eventually(lambda: "lifecycle_manager-4]: process started" in launched.process.output,
                        "the processes")
    os.killpg(launched.process.popen.pid, signal.SIGINT)
    launched.process.popen.wait(timeout=30)
    assert not alive_in_session(launched.process.popen.pid)


@pytest.fixture
def bad_yaml(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("name: [")
    return str(path)


@pytest.mark.parametrize("arguments, words", [
    (["robot:=nonesuch"], ["nonesuch", "tabletop"]),
    (["robot:=nonesuch", "world:=false"], ["nonesuch", "tabletop"]),
    (["robot:={bad_yaml}"], ["bad.yaml", "not YAML"]),
    (["seed:=many"], ["many", "whole number"]),
    (["policy:=magic"], ["magic", "scripted", "none"]),
], ids=["unknown robot", "unknown robot without world", "broken YAML", "seed", "policy"])
def test_an_argument_that_cannot_be_used_ends_the_launch_with_words(
        bad_yaml, launch_command, arguments, words):
    arguments = [argument.format(bad_yaml=bad_yaml) for argument in arguments]
    done = subprocess.run(launch_command(*arguments), capture_output=True, text=True, timeout=60)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Traceback" not in output and "process started" not in output
    for word in words:
        assert word in output


def test_every_launch_argument_is_described(launch_command):
    done = subprocess.run(launch_command("--show-args"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    described = dict(re.findall(r"^'?(\w+)'?:\s*(\S.*)?$", done.stdout, re.MULTILINE))
    described.pop("default", None)
    assert {"robot", "world", "policy", "namespace", "dry_run", "use_sim_time"} <= set(described)
    assert all(len(text) > 10 for text in described.values()), described
