# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Shared memory goes with its owner, is nobody else's, and is refused where it cannot be had."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys

import pytest

from omni_ros.tensors import HandleError, RingError, TensorRing, shared_memory, sweep

OWNER = """
import sys, time
from pathlib import Path
from omni_ros.tensors import TensorRing

ring = TensorRing.create("owned", slots=2, slot_bytes=64, folder=Path(sys.argv[1]))
print(ring.name, flush=True)
if sys.argv[2] == "wait":
    time.sleep(600)
"""


def test_the_file_is_the_users_alone_whatever_the_umask(make_ring, tmp_path):
    before = os.umask(0o777)
    try:
        ring = make_ring()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / ring.name).stat().st_mode) == 0o600


def test_a_name_says_whose_it_is_and_what_for(make_ring):
    parts = make_ring(what="prefix").name.split(".")
    assert parts[0] == "omni_ros" and int(parts[1]) == os.getpid() and parts[-1] == "prefix"
    assert int(parts[2]) > 0


def test_two_rings_never_share_a_name(make_ring):
    assert make_ring().name != make_ring().name


def test_closing_removes_the_name(make_ring, tmp_path):
    ring = make_ring()
    ring.close()
    assert os.listdir(tmp_path) == []


def test_a_ring_nobody_holds_any_more_is_removed(make_ring, tmp_path):
    TensorRing.create("held", slots=2, slot_bytes=8, folder=tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_process_that_ends_leaves_nothing(start_python, tmp_path):
    owner = start_python(OWNER, tmp_path, "end")
    owner.stdout.readline()
    assert owner.wait() == 0
    assert os.listdir(tmp_path) == []


def test_what_a_killed_owner_leaves_is_removed_by_the_next(start_python, tmp_path):
    owner = start_python(OWNER, tmp_path, "wait")
    name = owner.stdout.readline().strip()
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert os.listdir(tmp_path) == [name]
    with TensorRing.create("next", slots=2, slot_bytes=8, folder=tmp_path) as ring:
        assert os.listdir(tmp_path) == [ring.name]


def test_a_ring_whose_owner_lives_is_left_alone(start_python, tmp_path):
    owner = start_python(OWNER, tmp_path, "wait")
    name = owner.stdout.readline().strip()
    assert sweep(tmp_path) == []
    assert os.listdir(tmp_path) == [name]


def test_a_reader_does_not_keep_a_dead_owners_ring(start_python, tmp_path):
    owner = start_python(OWNER, tmp_path, "wait")
    name = owner.stdout.readline().strip()
    with TensorRing.attach(name, folder=tmp_path):
        owner.kill()
        owner.wait()
        assert sweep(tmp_path) == [name]


def test_a_program_started_by_the_owner_does_not_keep_its_ring(tmp_path):
    script = OWNER + """
import subprocess
print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-P", "-c", script, tmp_path, "go"],
                          stdout=subprocess.PIPE, text=True) as owner:
        name, child = owner.stdout.readline().strip(), int(owner.stdout.readline())
        try:
            owner.kill()
            owner.wait()
            assert sweep(tmp_path) == [name]
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_fork_does_not_take_the_ring_from_its_parent(make_ring, tmp_path):
    ring = make_ring()
    child = os.fork()
    if child == 0:
        ring.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.listdir(tmp_path) == [ring.name]


def test_files_of_others_are_not_swept(tmp_path):
    for name in ("fastrtps_port7000", "omni_ros", "omni_ros.1.2.3.x", "omni_ros.1.2.0f.a.b"):
        (tmp_path / name).touch()
    assert sweep(tmp_path) == []
    assert len(os.listdir(tmp_path)) == 4


def test_a_ring_swept_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    swept = []

    def flock(fd, kind, real=shared_memory.fcntl.flock):
        if not swept:
            swept.extend(os.listdir(tmp_path))
            os.unlink(tmp_path / swept[0])
        real(fd, kind)

    monkeypatch.setattr(shared_memory.fcntl, "flock", flock)
    with TensorRing.create("test", slots=2, slot_bytes=8, folder=tmp_path) as ring:
        assert swept and os.listdir(tmp_path) == [ring.name] != swept


def test_more_than_there_is_is_refused_with_need_and_have(tmp_path):
    with pytest.raises(RingError, match=r"needs \d+\.\d MB .* \d+\.\d MB.*transport:=inline"):
        TensorRing.create("huge", slots=256, slot_bytes=1 << 36, folder=tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_fills_up_meanwhile_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    def full(fd, offset, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(RingError, match="shm-size"):
        TensorRing.create("test", slots=2, slot_bytes=8, folder=tmp_path)
    assert os.listdir(tmp_path) == []


def test_less_memory_than_the_cgroup_allows_is_refused(tmp_path, monkeypatch):
    from omni_ros.telemetry import machine

    monkeypatch.setattr(machine, "memory", lambda *_: {"available": 4096})
    with pytest.raises(RingError, match="this process can have 0.0 MB"):
        TensorRing.create("test", slots=2, slot_bytes=1 << 20, folder=tmp_path)


def test_what_cannot_be_mapped_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    def full(*arguments, **settings):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(shared_memory.mmap, "mmap", full)
    with pytest.raises(RingError, match="cannot be mapped.*Cannot allocate memory"):
        TensorRing.create("test", slots=2, slot_bytes=8, folder=tmp_path)
    assert os.listdir(tmp_path) == [] and len(os.listdir("/proc/self/fd")) == before


def test_a_machine_without_shared_memory_is_told_what_to_do(tmp_path):
    with pytest.raises(RingError, match="no shared memory.*transport:=inline"):
        TensorRing.create("test", slots=2, slot_bytes=8, folder=tmp_path / "none")


@pytest.mark.parametrize("what", ["", "a" * 41, "../x", "Prefix", "a.b", "a b", "a\n", "ü"])
def test_a_ring_is_named_with_plain_letters(tmp_path, what):
    with pytest.raises(HandleError, match="a-z"):
        TensorRing.create(what, slots=2, slot_bytes=8, folder=tmp_path)


@pytest.mark.parametrize("name", [
    "", ".", "../../etc/passwd", "/etc/passwd", "fastrtps_port7000", None, 5,
    "omni_ros.1.2.0123456789abcdef.x/../y", "omni_ros.1.2.0123456789abcdef.x\0",
    "omni_ros.1.2.0123456789abcdef.x\n", "omni_ros.-1.2.0123456789abcdef.x",
    "omni_ros.1.2.0123456789ABCDEF.x", "omni_ros.1.2.0123456789abcdef." + "x" * 300,
    "omni_ros.٣.2.0123456789abcdef.x",
])
def test_a_name_that_no_ring_can_have_is_refused(tmp_path, name):
    with pytest.raises(HandleError, match="no name of shared memory"):
        TensorRing.attach(name, folder=tmp_path)


GOOD = "omni_ros.1.2.0123456789abcdef.test"


def test_a_link_is_not_followed(make_ring, tmp_path):
    (tmp_path / GOOD).symlink_to(tmp_path / make_ring().name)
    with pytest.raises(RingError, match="cannot be opened"):
        TensorRing.attach(GOOD, folder=tmp_path)


def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / GOOD)
    with pytest.raises(RingError):
        TensorRing.attach(GOOD, folder=tmp_path)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / GOOD).touch()
    with pytest.raises(RingError, match="empty"):
        TensorRing.attach(GOOD, folder=tmp_path)


def test_another_users_file_is_refused(make_ring, tmp_path, monkeypatch):
    name = make_ring().name
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(RingError, match="user 12345"):
        TensorRing.attach(name, folder=tmp_path)
