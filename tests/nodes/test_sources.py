# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Watching the processes behind heartbeats."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from omni_ros.msg import Heartbeat  # noqa: E402
from omni_ros.nodes._sources import MOST_WATCHED, ProcessWatch, Seen  # noqa: E402
from omni_ros.nodes._support import pid_scope  # noqa: E402


@pytest.fixture
def watch():
    watch = ProcessWatch()
    yield watch
    watch.close()


@pytest.fixture
def child():
    """Start processes that do nothing until they are killed."""
    children = []

    def start() -> subprocess.Popen:
        children.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        return children[-1]

    yield start
    for process in children:
        process.kill()
        process.wait()
        process.stdin.close()


def beat(pid: int, source: str = "local", scope: str | None = None) -> Heartbeat:
    return Heartbeat(source=source, pid=pid, pid_scope=pid_scope() if scope is None else scope)


def zombie(process: subprocess.Popen) -> None:
    """Kill, and wait for the end without reaping."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def test_a_killed_process_is_reported_once(watch, child):
    process = child()
    assert watch.see(beat(process.pid)) is Seen.SAME
    assert watch.ended() == []
    zombie(process)
    assert watch.ended() == ["local"]
    assert watch.ended() == []


@pytest.mark.parametrize("reaped", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_a_beat_that_outlived_its_process_is_told_from_a_living_one(watch, child, reaped, known):
    process = child()
    if known:
        watch.see(beat(process.pid))
    zombie(process)
    if known:
        watch.ended()
    if reaped:
        process.wait()
    assert watch.see(beat(process.pid)) is Seen.ENDED
    assert watch.see(beat(process.pid)) is Seen.ENDED
    assert watch.ended() == []


def test_a_restarted_source_is_another_process(watch, child):
    watch.see(beat(child().pid))
    assert watch.see(beat(child().pid)) is Seen.OTHER


def test_a_restarted_source_is_another_process_on_another_machine_too(watch):
    watch.see(beat(41, scope="elsewhere"))
    assert watch.see(beat(41, scope="elsewhere")) is Seen.SAME
    assert watch.see(beat(42, scope="elsewhere")) is Seen.OTHER


def test_a_process_of_another_machine_is_not_looked_for_here(watch, child):
    process = child()
    zombie(process)
    process.wait()
    assert watch.see(beat(process.pid, scope="elsewhere")) is Seen.SAME


@pytest.mark.parametrize("error", [PermissionError, OSError])
def test_where_processes_may_not_be_watched_a_beating_source_counts_as_alive(
        watch, monkeypatch, error):
    def refuse(pid):
        raise error

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert [watch.see(beat(os.getpid())) for _ in range(3)] == [Seen.SAME] * 3
    assert watch.ended() == []


@pytest.mark.parametrize("pid", [0, 2**32 - 1])
def test_what_is_no_process_id_is_not_watched(watch, pid):
    assert [watch.see(beat(pid)) for _ in range(2)] == [Seen.SAME] * 2


def test_more_sources_than_can_be_watched_are_let_by(watch):
    for number in range(2 * MOST_WATCHED):
        assert watch.see(beat(os.getpid(), f"source {number}")) is Seen.SAME


def test_the_newest_source_is_watched_however_many_came_before(watch, child):
    for number in range(2 * MOST_WATCHED):
        watch.see(beat(os.getpid(), f"source {number}"))
    process = child()
    watch.see(beat(process.pid, "newest"))
    zombie(process)
    assert watch.ended() == ["newest"]


def test_closing_leaves_no_descriptors_open(watch, child):
    children = [child() for _ in range(2)]
    lowest_free = os.dup(0)
    os.close(lowest_free)
    for process in children:
        watch.see(beat(process.pid))
    watch.close()
    again = os.dup(0)
    os.close(again)
    assert again == lowest_free
