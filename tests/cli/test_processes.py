# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Finding processes, reading their CPU time, ending them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from omni_ros.cli import processes


def fake_process(proc: Path, pid: int, parent: int, line: str, ticks: tuple[int, int] = (0, 0)):
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    head = f"{pid} (name) with) S {parent} 1 1 0 -1 0 1 0 0 0 {ticks[0]} {ticks[1]} 0 0 20 0 1 0"
    (folder / "stat").write_text(head + " 5" * 30)
    (folder / "cmdline").write_text(line.replace(" ", "\0"))


@pytest.fixture
def proc(tmp_path):
    fake_process(tmp_path, 10, 1, "ros2 launch omni_ros vla.launch.py")
    fake_process(tmp_path, 11, 10, "/bin/sh /opt/lib/omni_ros/action_player --ros-args")
    fake_process(tmp_path, 12, 11, "python3 /opt/lib/omni_ros/action_player --ros-args", (150, 50))
    fake_process(tmp_path, 13, 10, "python3 /opt/lib/omni_ros/world -r __node:=action_player")
    fake_process(tmp_path, 20, 1, "python3 /opt/lib/omni_ros/action_player --ros-args")
    (tmp_path / "self").mkdir()
    return tmp_path


def test_descendants_are_found_through_every_generation(proc):
    assert processes.descendants(10, proc) == [11, 13, 12]


def test_a_node_is_found_behind_its_shell_and_only_below_the_launch(proc):
    assert processes.find_descendant(10, "action_player", proc) == 12


def test_a_node_that_is_not_there_is_none(proc):
    assert processes.find_descendant(10, "policy", proc) is None


def test_cpu_time_is_user_and_system_time_whatever_the_name_holds(proc):
    assert processes.cpu_seconds(12, proc) == pytest.approx(200 / os.sysconf("SC_CLK_TCK"))


def test_the_cpu_time_of_a_process_that_is_gone_is_none(proc):
    assert processes.cpu_seconds(99, proc) is None


def test_busy_processes_use_cpu_and_are_gone_afterwards():
    with processes.busy_processes(1) as pids:
        end = time.monotonic() + 20.0
        while (processes.cpu_seconds(pids[0]) or 0.0) < 0.1 and time.monotonic() < end:
            time.sleep(0.05)
        assert processes.cpu_seconds(pids[0]) >= 0.1
    assert processes.cpu_seconds(pids[0]) is None


def test_a_tree_is_ended_to_its_leaves_even_if_they_ignore_the_interrupt():
    leaf = "import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(60)"
    root = (
        "import subprocess, sys, time;"
        f"subprocess.Popen([sys.executable, '-c', {leaf!r}]);"
        "print('up', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", root],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.stdout.readline()
    below = processes.descendants(process.pid)
    processes.stop_tree(process, patience=5.0)
    assert len(below) == 1 and process.poll() is not None
    end = time.monotonic() + 5.0
    while processes._alive(below[0]) and time.monotonic() < end:
        time.sleep(0.05)
    assert not processes._alive(below[0])
