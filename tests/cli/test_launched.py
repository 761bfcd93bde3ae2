# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Running the graph as a child: what is refused beforehand, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from omni_ros.cli import UsageError, launched, processes
from omni_ros.cli.children import child_environment

#: A command that runs a "graph" until it is told to end, and prints the graph's process id.
PARENT = """
import sys
from pathlib import Path
from omni_ros.cli import main
from omni_ros.cli.launched import launched

def run(arguments):
    import time
    graph = [sys.executable, "-c", "import time; time.sleep(60)"]
    with launched(graph, Path(sys.argv[1])) as (process, _):
        print(process.pid, flush=True)
        time.sleep(60)

module = type("module", (), {"add_arguments": staticmethod(lambda parser: None)})
module.run = staticmethod(run)
main.importlib.import_module = lambda name: module
sys.exit(main.main(["demo"]))
"""


def end_of_both(tmp_path: Path, number: int) -> tuple[int, bool]:
    """Signal a command that runs a graph; return its exit status and whether the graph ended."""
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    parent = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=child_environment(), cwd="/")
    graph = int(parent.stdout.readline())
    parent.send_signal(number)
    status = parent.wait(60)
    parent.stdout.close()
    end = time.monotonic() + 30.0
    while processes._alive(graph) and time.monotonic() < end:
        time.sleep(0.05)
    ended = not processes._alive(graph)
    if not ended:
        os.kill(graph, signal.SIGKILL)
    return status, ended


def test_a_command_that_is_terminated_ends_its_graph_and_exits_143(tmp_path):
    assert end_of_both(tmp_path, signal.SIGTERM) == (143, True)


def test_the_graph_of_a_command_that_is_killed_ends_with_it(tmp_path):
    assert end_of_both(tmp_path, signal.SIGKILL) == (-signal.SIGKILL, True)


def test_a_second_player_is_refused_with_its_topic_and_the_domain():
    with pytest.raises(UsageError, match="/left/action_player/status.*ROS_DOMAIN_ID=7.*export"):
        launched.refuse_second_player("/left/action_player/status", "7")


def test_a_domain_without_a_player_is_free():
    launched.refuse_second_player(None, "0")


def test_the_domain_that_is_advised_is_another_one():
    with pytest.raises(UsageError, match="export ROS_DOMAIN_ID=41"):
        launched.refuse_second_player("/action_player/status", "40")


def test_a_counter_that_fell_is_an_error_and_no_figure():
    before, after = SimpleNamespace(ticks=500), SimpleNamespace(ticks=20)
    assert launched.rise(after, before, "ticks") == 480
    with pytest.raises(RuntimeError, match="ticks fell from 500 to 20"):
        launched.rise(before, after, "ticks")
