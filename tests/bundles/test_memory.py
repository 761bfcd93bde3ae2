# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import pytest

from omni_ros.bundles import MemoryShortage, check_memory, layout, memory_left, read_manifest


def machine(root, available_kb: int, limit: int | None = None, used: int = 0):
    (root / "proc/self").mkdir(parents=True)
    text = f"MemTotal: 8000000 kB\nMemAvailable: {available_kb} kB\n"
    (root / "proc/meminfo").write_text(text)
    if limit is not None:
        (root / "proc/self/cgroup").write_text("0::/robot\n")
        (root / "sys/fs/cgroup/robot").mkdir(parents=True)
        (root / "sys/fs/cgroup/robot/memory.max").write_text(f"{limit}\n")
        (root / "sys/fs/cgroup/robot/memory.current").write_text(f"{used}\n")
    return root


@pytest.fixture
def large(pristine) -> layout.Manifest:
    """A bundle that says it needs 5.6 GB."""
    memory = layout.Memory(5_000_000_000, 0, 600_000_000, 0, 5_600_000_000)
    return dataclasses.replace(read_manifest(pristine), memory=memory)


def test_a_bundle_that_fits_passes(large, tmp_path):
    check_memory(large, root=machine(tmp_path, 6_000_000))


def test_too_little_memory_is_refused_with_need_and_have(large, tmp_path):
    with pytest.raises(MemoryShortage) as caught:
        check_memory(large, root=machine(tmp_path, 4_000_000))
    for words in ("needs 5600 MB", "can have 4096 MB", "weights 5000 MB", "workspaces 600 MB"):
        assert words in str(caught.value)


def test_a_stage_needs_the_memory_of_its_own_program_alone(large, tmp_path):
    root = machine(tmp_path, 4_000_000)
    check_memory(large, programs=("action_head",), root=root)
    head = large.programs["action_head"]
    greedy = dataclasses.replace(head, constants_bytes=5_000_000_000)
    larger = dataclasses.replace(large, programs={**large.programs, "action_head": greedy})
    with pytest.raises(MemoryShortage, match="action_head of bundle .* needs 500"):
        check_memory(larger, programs=("action_head",), root=root)


def test_the_limit_of_the_cgroup_counts(large, tmp_path):
    root = machine(tmp_path, 7_000_000, limit=5_000_000_000, used=1_000_000_000)
    assert memory_left(root) == 4_000_000_000
    with pytest.raises(MemoryShortage, match="have 4000 MB, in a cgroup limited to 5000 MB"):
        check_memory(large, root=root)


def test_what_shall_be_left_over_is_counted(large, tmp_path):
    root = machine(tmp_path, 6_000_000)
    with pytest.raises(MemoryShortage, match="1000 MB to be left over"):
        check_memory(large, reserve=1_000_000_000, root=root)


def test_a_machine_that_does_not_tell_is_believed(large, tmp_path):
    check_memory(large, root=tmp_path)
