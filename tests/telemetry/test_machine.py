# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reading /proc and /sys of machines of all kinds."""

from __future__ import annotations

import pytest
from omni_ros.telemetry import machine

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
model\t\t: 17
model name\t: AMD EPYC 9B14
flags\t\t: fpu sse2 fma f16c avx2 avx512f avx512_vnni avx512_bf16

processor\t: 1
model name\t: AMD EPYC 9B14
flags\t\t: fpu
"""
ARM = """processor\t: 0
BogoMIPS\t: 108.00
Features\t: fp asimd evtstrm aes asimdhp cpuid asimddp i8mm bf16 sve
CPU implementer\t: 0x41

Hardware\t: BCM2835
Model\t\t: Raspberry Pi 5 Model B Rev 1.0
"""


@pytest.fixture
def tree(tmp_path):
    def write(files: dict[str, str]):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def test_an_x86_processor_is_named_with_its_features(tree):
    root = tree({"proc/cpuinfo": X86})
    assert machine.cpu_model(root) == "AMD EPYC 9B14"
    expected = ["fma", "f16c", "avx2", "avx512", "avx512-vnni", "avx512-bf16"]
    assert machine.cpu_features(root) == expected


def test_an_arm_board_is_named_with_its_features(tree):
    root = tree({"proc/cpuinfo": ARM})
    assert machine.cpu_model(root) == "Raspberry Pi 5 Model B Rev 1.0"
    assert machine.cpu_features(root) == ["neon", "fp16", "dotprod", "i8mm", "bf16", "sve"]


def test_the_device_tree_names_a_board_that_cpuinfo_does_not(tree):
    files = {"proc/cpuinfo": "processor : 0\n", "proc/device-tree/model": "NVIDIA Jetson Orin\0"}
    assert machine.cpu_model(tree(files)) == "NVIDIA Jetson Orin"


def test_a_kernel_that_tells_nothing_gives_no_error(tmp_path):
    assert machine.cpu_model(tmp_path)
    assert machine.cpu_features(tmp_path) == []
    assert machine.cgroup_cpus(tmp_path) is None
    assert machine.memory(tmp_path) == {"total": None, "available": None, "cgroup_limit": None}
    assert machine.shared_memory(tmp_path) is None
    assert machine.operating_system(tmp_path)


@pytest.mark.parametrize("text", ["garbage", "0::", ":::\n1:2", "0::/../../x"])
def test_a_strange_cgroup_line_gives_no_error(tree, text):
    root = tree({"proc/self/cgroup": text, "sys/fs/cgroup/cpu.max": "max 100000"})
    assert machine.cgroup_cpus(root) is None


def test_a_quota_of_any_parent_holds(tree):
    root = tree(
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/cpu.max": "150000 100000",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000",
        }
    )
    assert machine.cgroup_cpus(root) == 1.5
    assert machine.cores_usable(root) == min(1.5, len(machine.cpus_allowed()))


def test_the_old_cgroups_quota_and_limit_are_read(tree):
    root = tree(
        {
            "proc/self/cgroup": "4:memory:/m\n3:cpu,cpuacct:/c\n",
            "proc/meminfo": "MemTotal: 4096 kB\nMemAvailable: 3072 kB\n",
            "sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/m/memory.limit_in_bytes": str(2 << 20),
            "sys/fs/cgroup/memory/m/memory.usage_in_bytes": str(1 << 20),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        }
    )
    assert machine.cgroup_cpus(root) == 0.5
    expected = {"total": 4 << 20, "available": 1 << 20, "cgroup_limit": 2 << 20}
    assert machine.memory(root) == expected


def test_no_quota_is_none_and_not_a_negative_number_of_cores(tree):
    files = {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}
    root = tree({f"sys/fs/cgroup/cpu/{name}": text for name, text in files.items()})
    tree({"proc/self/cgroup": "1:cpu:/\n"})
    assert machine.cgroup_cpus(root) is None


def test_memory_left_is_what_the_cgroup_still_allows(tree):
    root = tree(
        {
            "proc/meminfo": "MemTotal: 8192 kB\nMemAvailable: 6144 kB\n",
            "proc/self/cgroup": "0::/x\n",
            "sys/fs/cgroup/x/memory.max": str(4 << 20),
            "sys/fs/cgroup/x/memory.current": str(5 << 20),
        }
    )
    assert machine.memory(root)["available"] == 0


def test_files_cached_in_a_cgroup_count_as_memory_left(tree):
    root = tree(
        {
            "proc/meminfo": "MemTotal: 8192 kB\nMemAvailable: 6144 kB\n",
            "proc/self/cgroup": "0::/x\n",
            "sys/fs/cgroup/x/memory.max": str(4 << 20),
            "sys/fs/cgroup/x/memory.current": str(3 << 20),
            "sys/fs/cgroup/x/memory.stat": f"anon {1 << 20}\ninactive_file {2 << 20}\n",
        }
    )
    assert machine.memory(root)["available"] == 3 << 20


def test_without_a_cgroup_limit_the_kernels_estimate_counts(tree):
    root = tree(
        {
            "proc/meminfo": "MemTotal: 8192 kB\nMemAvailable: 6144 kB\n",
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "max",
        }
    )
    assert machine.memory(root) == {"total": 8 << 20, "available": 6 << 20, "cgroup_limit": None}


def test_the_distribution_is_named_as_it_names_itself(tree):
    assert machine.operating_system(tree({"etc/os-release": 'ID=x\nPRETTY_NAME="X 1"\n'})) == "X 1"


def test_beside_old_hierarchies_the_new_one_is_read_from_its_own_folder(tree):
    root = tree(
        {
            "proc/self/cgroup": "1:cpu:/\n0::/x\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/unified/x/cpu.max": "150000 100000",
        }
    )
    assert machine.cgroup_cpus(root) == 1.5
