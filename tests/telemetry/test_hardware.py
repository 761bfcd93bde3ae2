# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reading the topology and the limits of machines of all kinds."""

from __future__ import annotations

import pytest
from omni_ros.telemetry.cpulist import format_cpus, parse_cpus
from omni_ros.telemetry.hardware import Cache, read_hardware, this_machine

CPU = "sys/devices/system/cpu/"
MACHINES = ["development_vm", "jetson_agx_orin", "jetson_orin_nx_6core", "raspberry_pi_5",
            "rk3588_rock_5b"]  # fmt: skip


def fast(hardware):
    return [n for n in hardware.by_number if hardware.is_fast(n)]


def clusters(hardware):
    return [cpu.cluster for cpu in hardware.cpus]


@pytest.mark.parametrize("name", MACHINES)
def test_of_the_recorded_machines_nothing_is_missing(recorded, name):
    assert recorded(name).missing == ()


def test_the_virtual_machine_has_two_cores_of_one_kind(recorded):
    hardware = recorded("development_vm")
    assert hardware.model == "AMD EPYC"
    assert hardware.summary() == "2 cores"
    assert fast(hardware) == [0, 1] and hardware.quota is None
    assert hardware.memory_total == 24684092 << 10 and hardware.memory_limit is None
    assert Cache(3, "Unified", 32 << 20, (0, 1)) in hardware.caches


def test_a_kernel_without_clusters_does_not_make_each_core_one(recorded):
    assert clusters(recorded("development_vm")) == [0, 0]


def test_the_agx_orin_has_three_clusters_of_four_equal_cores(recorded):
    hardware = recorded("jetson_agx_orin")
    assert hardware.model == "NVIDIA Jetson AGX Orin Developer Kit"
    assert clusters(hardware) == [0] * 4 + [4] * 4 + [8] * 4
    assert fast(hardware) == list(range(12))


def test_the_six_core_orin_nx_has_clusters_of_four_and_two(recorded):
    assert clusters(recorded("jetson_orin_nx_6core")) == [0, 0, 0, 0, 4, 4]


def test_the_raspberry_pi_is_named_and_one_cluster(recorded):
    hardware = recorded("raspberry_pi_5")
    assert hardware.model == "Raspberry Pi 5 Model B Rev 1.0"
    assert clusters(hardware) == [0] * 4 and {c.max_khz for c in hardware.cpus} == {2400000}


def test_the_rk3588s_little_cores_are_slow_by_capacity(recorded):
    hardware = recorded("rk3588_rock_5b")
    assert fast(hardware) == [4, 5, 6, 7]
    assert hardware.speed_from == "capacity" and hardware.speed(0) == pytest.approx(397 / 1024)
    assert hardware.summary() == "8 cores (4 fast, 4 slow)"


def test_big_cores_that_differ_from_part_to_part_are_all_fast(recorded):
    changed = {CPU + "cpu{4-5}/cpu_capacity": "982"}
    assert fast(recorded("rk3588_rock_5b", changed)) == [4, 5, 6, 7]


def test_where_all_capacities_are_alike_the_frequency_tells_slow_cores(recorded):
    hardware = recorded("rk3588_rock_5b", {CPU + "cpu{0-7}/cpu_capacity": "1024"})
    assert hardware.speed_from == "frequency" and fast(hardware) == [4, 5, 6, 7]


def test_favoured_cores_of_one_kind_do_not_make_the_others_slow(made_up):
    files = {CPU + "cpu{0-3}/cpufreq/cpuinfo_max_freq": "5500000",
             CPU + "cpu{4-5}/cpufreq/cpuinfo_max_freq": "5800000"}
    assert fast(made_up(6, files=files)) == [0, 1, 2, 3, 4, 5]


def test_efficient_cores_of_x86_are_slow_whatever_their_clock(made_up):
    files = {CPU + "cpu{0-1}/cpufreq/cpuinfo_max_freq": "4800000",
             CPU + "cpu{2-5}/cpufreq/cpuinfo_max_freq": "4400000",
             "sys/devices/cpu_core/cpus": "0-1", "sys/devices/cpu_atom/cpus": "2-5"}
    assert fast(made_up(6, files=files)) == [0, 1]


def test_a_power_mode_that_switches_cores_off_leaves_those_online(recorded):
    changed = {CPU + "online": "0-3", "proc/self/status": "Cpus_allowed_list:\t0-3"}
    hardware = recorded("jetson_agx_orin", changed)
    assert list(hardware.by_number) == [0, 1, 2, 3] and hardware.possible == tuple(range(12))
    assert "8 cpus switched off" in hardware.summary()


def test_hardware_threads_are_grouped_by_core(made_up):
    hardware = made_up(4, threads=2)
    assert hardware.siblings(1) == (1, 5) and hardware.siblings(7) == (3, 7)
    assert hardware.summary() == "4 cores with 8 hardware threads"


def test_clusters_are_taken_from_the_kernel_where_it_tells_them(made_up):
    files = {CPU + "cpu{0-3}/topology/cluster_cpus_list": "0-3",
             CPU + "cpu{4-5}/topology/cluster_cpus_list": "4-5"}
    assert clusters(made_up(6, files=files)) == [0, 0, 0, 0, 4, 4]


def test_cores_that_share_a_last_cache_are_a_cluster(made_up):
    files = {}
    for cpus in ("0-3", "4-7"):
        folder = CPU + f"cpu{{{cpus}}}/cache/index3/"
        files |= {folder + "level": "3", folder + "type": "Unified", folder + "size": "16M",
                  folder + "shared_cpu_list": cpus}
    assert clusters(made_up(8, files=files)) == [0, 0, 0, 0, 4, 4, 4, 4]


def test_a_process_bound_to_some_cpus_may_use_only_those(made_up):
    hardware = made_up(8, files={"proc/self/status": "Cpus_allowed_list:\t2-3,6\n"})
    assert hardware.usable == (2, 3, 6)
    assert "only cpus 2-3,6 allowed" in hardware.summary()


def test_isolated_cpus_are_not_usable_even_if_allowed(made_up):
    hardware = made_up(4, files={CPU + "isolated": "3"})
    assert hardware.allowed == (0, 1, 2, 3) and hardware.usable == (0, 1, 2)


@pytest.mark.parametrize("files", [
    {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000",
     "sys/fs/cgroup/a/cpu.max": "250000 100000", "sys/fs/cgroup/cpu.max": "400000 100000"},
    {"proc/self/cgroup": "3:cpu,cpuacct:/a/b\n",
     "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us": "-1",
     "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000",
     "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "250000",
     "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000"},
], ids=["version 2", "version 1"])  # fmt: skip
def test_the_smallest_quota_on_the_way_to_the_root_holds(made_up, files):
    assert made_up(8, files=files).quota == 2.5


@pytest.mark.parametrize("files", [
    {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cgroup.type": "domain",
     "sys/fs/cgroup/a/cpuset.cpus.effective": "4-7",
     "sys/fs/cgroup/cpuset.cpus.effective": "0-7"},
    {"proc/self/cgroup": "5:cpuset:/a\n", "sys/fs/cgroup/cpuset/a/cpuset.effective_cpus": "4-7",
     "sys/fs/cgroup/cpuset/cpuset.cpus": "0-7"},
], ids=["version 2", "version 1"])  # fmt: skip
def test_the_nearest_cpuset_holds(made_up, files):
    assert made_up(8, files=files).cpuset == (4, 5, 6, 7)


def test_memory_is_told_with_the_limit_of_its_cgroup(recorded):
    files = {"sys/fs/cgroup/user.slice/memory.max": str(4 << 30),
             "sys/fs/cgroup/user.slice/memory.current": str(1 << 30)}
    hardware = recorded("jetson_agx_orin", files)
    assert hardware.memory_total == 30800000 << 10
    assert (hardware.memory_limit, hardware.memory_available) == (4 << 30, 3 << 30)


def test_a_kernel_that_tells_nothing_gives_one_cpu_and_says_what_is_missing(tmp_path):
    hardware = read_hardware(tmp_path)
    assert hardware.usable == (0,) and hardware.is_fast(0) and hardware.quota is None
    assert len(hardware.missing) == 6
    assert hardware.summary() == "1 core"


def test_without_a_list_of_cpus_the_processors_of_cpuinfo_count(write_tree):
    root = write_tree({"proc/cpuinfo": "processor : 0\n\nprocessor : 1\n"})
    assert read_hardware(root).usable == (0, 1)


@pytest.mark.parametrize("text", ["", "x", "3-1", "0-", "-1", "0-999999", "\0", "1" * 5000, "0;1"])
def test_garbage_in_any_file_is_as_good_as_missing(recorded, text):
    files = {CPU + name: text for name in (
        "online", "possible", "isolated", "cpu0/cpu_capacity", "cpu0/topology/core_cpus_list",
        "cpu0/topology/thread_siblings_list", "cpu0/topology/cluster_cpus_list",
        "cpu1/topology/physical_package_id", "cpu2/cpufreq/cpuinfo_max_freq",
        "cpu1/cache/index3/size", "cpu1/cache/index3/shared_cpu_list", "cpu1/cache/index2/level")}
    files["proc/self/status"] = f"Cpus_allowed_list:\t{text}\n"
    files["sys/fs/cgroup/cpuset.cpus.effective"] = text
    hardware = recorded("raspberry_pi_5", files)
    assert hardware.usable == hardware.cpuset == (0, 1, 2, 3)
    assert hardware.missing and hardware.summary()


def test_this_machine_can_be_read():
    hardware = read_hardware()
    assert hardware.source == "/" and hardware.usable and hardware.model


@pytest.mark.parametrize("text, cpus", [
    ("", ()), (" ", ()), ("3", (3,)), ("2,3", (2, 3)), ("2-4", (2, 3, 4)), ("1, 3-4", (1, 3, 4)),
    ("2-4, 0", (0, 2, 3, 4)), ("1,1", (1,))])
def test_a_list_of_cpus_is_read_sorted_and_once_each(text, cpus):
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", [
    "a", "3-1", "-1", "1-", "0-8192", "1 2", "0x1", "3-", "4-2", "1.5", "2;3"])
def test_what_is_no_list_of_cpus_is_refused_with_how_to_write_one(text):
    with pytest.raises(ValueError, match="write them as '3', '2,3' or '2-3,6'"):
        parse_cpus(text)


def test_cpus_are_written_as_the_kernel_does():
    assert format_cpus([6, 3, 2, 0]) == "0,2-3,6" and format_cpus([]) == ""


def test_this_machine_is_read_once_so_that_threads_bound_later_do_not_count_as_limits(monkeypatch):
    first = this_machine()
    monkeypatch.setattr("omni_ros.telemetry.hardware.read_hardware", lambda: None)
    assert this_machine() is first
