# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni doctor`: what it finds, and when it calls something a problem."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from omni_ros.cli import UsageError, checks_machine, checks_software, doctor
from omni_ros.cli.children import Outcome
from omni_ros.cli.report import NOTE, OK, PROBLEM, Finding

ARGUMENTS = SimpleNamespace(json=False, record_hardware=None, hardware=None)
JSON = SimpleNamespace(json=True, record_hardware=None, hardware=None)


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(checks_software, "is_there", lambda module: False)


@pytest.fixture
def everything_found(monkeypatch):
    monkeypatch.setattr(checks_software, "is_there", lambda module: True)


def answer(monkeypatch, outcome):
    monkeypatch.setattr(checks_software, "try_python", lambda *args, **kwargs: outcome)


def by_subject(findings):
    return {finding.subject: finding for finding in findings}


def prefix_with_rmw(tmp_path: Path, *names: str) -> Path:
    folder = tmp_path / "share/ament_index/resource_index/rmw_typesupport"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    return tmp_path


def test_a_machine_without_ros_is_no_problem(nothing_installed):
    findings = list(checks_software.ros({}))
    assert [finding.mark for finding in findings] == [NOTE]
    assert findings[0].advice


def test_a_sourced_ros_that_does_not_load_is_a_problem(monkeypatch, tmp_path, everything_found):
    answer(monkeypatch, Outcome(False, "", "ImportError: librcl.so: cannot open"))
    env = {"ROS_DISTRO": "jazzy", "AMENT_PREFIX_PATH": str(tmp_path)}
    found = by_subject(checks_software.ros(env))
    assert found["rmw"].mark == PROBLEM and "librcl.so" in found["rmw"].fact


def test_a_middleware_that_is_not_installed_is_a_problem(monkeypatch, tmp_path, everything_found):
    answer(monkeypatch, Outcome(False, "", "ended by SIGABRT"))
    prefix = prefix_with_rmw(tmp_path, "rmw_fastrtps_cpp")
    env = {
        "ROS_DISTRO": "jazzy",
        "AMENT_PREFIX_PATH": str(prefix),
        "RMW_IMPLEMENTATION": "rmw_zenoh_cpp",
    }
    found = by_subject(checks_software.ros(env))["rmw"]
    assert found.mark == PROBLEM
    assert "rmw_zenoh_cpp" in found.fact and "rmw_fastrtps_cpp" in found.fact
    assert "rmw-zenoh-cpp" in found.advice


def test_the_middleware_in_use_and_those_available_are_named(
    monkeypatch, tmp_path, everything_found
):
    answer(monkeypatch, Outcome(True, "rmw_fastrtps_cpp", ""))
    names = ("rmw_fastrtps_cpp", "rmw_cyclonedds_cpp", "rmw_implementation")
    prefix = prefix_with_rmw(tmp_path, *names)
    env = {"ROS_DISTRO": "jazzy", "AMENT_PREFIX_PATH": str(prefix)}
    found = by_subject(checks_software.ros(env))["rmw"]
    assert found.mark == OK
    assert found.fact.startswith("rmw_fastrtps_cpp (default); ")
    assert found.fact.endswith("available: rmw_cyclonedds_cpp, rmw_fastrtps_cpp")


def test_a_prefix_that_is_gone_is_a_problem(monkeypatch, tmp_path, everything_found):
    answer(monkeypatch, Outcome(True, "rmw_fastrtps_cpp", ""))
    env = {"ROS_DISTRO": "jazzy", "AMENT_PREFIX_PATH": f"{tmp_path}:{tmp_path}/gone"}
    found = by_subject(checks_software.ros(env))["distribution"]
    assert found.mark == PROBLEM and f"{tmp_path}/gone" in found.advice


def test_a_source_folder_that_hides_the_built_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(checks_software, "is_there", lambda module: module != "omni_ros.msg")
    answer(monkeypatch, Outcome(True, "rmw_fastrtps_cpp", ""))
    env = {"ROS_DISTRO": "jazzy", "AMENT_PREFIX_PATH": str(tmp_path)}
    found = by_subject(checks_software.ros(env))["interfaces"]
    assert found.mark == NOTE and "colcon build" in found.advice
    (tmp_path / "share/omni_ros").mkdir(parents=True)
    (tmp_path / "share/omni_ros/package.xml").touch()
    found = by_subject(checks_software.ros(env))["interfaces"]
    assert found.mark == NOTE and str(tmp_path) in found.fact and "another folder" in found.advice


@pytest.mark.parametrize(
    ("value", "mark"),
    [("", OK), ("0", OK), ("42", OK), ("101", OK), ("200", NOTE), ("233", PROBLEM), ("x", PROBLEM),
     ("-1", PROBLEM)],
)  # fmt: skip
def test_the_domain_is_checked_against_what_dds_allows(
    monkeypatch, tmp_path, everything_found, value, mark
):
    answer(monkeypatch, Outcome(True, "rmw_fastrtps_cpp", ""))
    env = {"ROS_DISTRO": "jazzy", "AMENT_PREFIX_PATH": str(tmp_path), "ROS_DOMAIN_ID": value}
    assert by_subject(checks_software.ros(env))["domain"].mark == mark


def test_absent_backends_are_notes_with_the_line_to_type(nothing_installed):
    findings = list(checks_software.backends())
    assert {finding.subject for finding in findings} == {"executorch", "torch", "llama_cpp"}
    for finding in findings:
        assert finding.mark == NOTE and finding.advice.startswith("pip install ")


def test_a_backend_that_is_there_but_does_not_load_is_a_problem(monkeypatch, everything_found):
    answer(monkeypatch, Outcome(False, "", "undefined symbol: x"))
    found = by_subject(checks_software.backends())["executorch"]
    assert found.mark == PROBLEM and "undefined symbol" in found.fact


def test_a_missing_numpy_is_a_problem(nothing_installed):
    assert by_subject(checks_software.python())["numpy"].mark == PROBLEM


def test_no_renderer_that_draws_is_a_note_with_each_reason(monkeypatch, everything_found):
    answer(monkeypatch, Outcome(False, "", "no library"))
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    found = by_subject(checks_software.world())["rendering"]
    assert found.mark == NOTE and "egl: no library" in found.fact and "osmesa" in found.fact


def test_portaudio_devices_are_listed_by_direction(monkeypatch, everything_found):
    answer(monkeypatch, Outcome(True, "PortAudio V19\n2 0 Speaker (big)\n0 1 Microphone", ""))
    found = by_subject(checks_software.audio())
    assert found["outputs"].fact == "Speaker (big)" and found["inputs"].fact == "Microphone"


def test_alsa_cards_are_read_from_the_kernels_list(tmp_path):
    (tmp_path / "proc/asound").mkdir(parents=True)
    (tmp_path / "proc/asound/cards").write_text(
        " 0 [PCH            ]: HDA-Intel - HDA Intel PCH\n"
        "                      HDA Intel PCH at 0xdf340000 irq 138\n"
    )
    assert checks_software.alsa_cards(tmp_path) == ["HDA-Intel - HDA Intel PCH"]
    assert checks_software.alsa_cards(tmp_path / "none") == []


def test_missing_shared_memory_is_a_problem_and_dockers_default_a_note(monkeypatch):
    facts = checks_machine.facts
    monkeypatch.setattr(facts, "shared_memory", lambda: None)
    assert by_subject(checks_machine.machine())["/dev/shm"].mark == PROBLEM
    monkeypatch.setattr(facts, "shared_memory", lambda: {"total": 64 << 20, "free": 60 << 20})
    found = by_subject(checks_machine.machine())["/dev/shm"]
    assert found.mark == NOTE and "60 MiB free of 64 MiB" in found.fact


def test_a_core_quota_is_told(monkeypatch):
    monkeypatch.setattr(checks_machine.facts, "cgroup_cpus", lambda: 0.5)
    monkeypatch.setattr(checks_machine.facts, "cores_usable", lambda: 0.5)
    found = by_subject(checks_machine.machine())["cores"]
    assert found.mark == NOTE and "cgroup quota of 0.5" in found.fact


def test_a_refused_real_time_priority_is_a_note_with_what_to_change(monkeypatch):
    rt = checks_machine.rt
    refused = rt.Answer("SCHED_FIFO priority 50", False, f"refused: no; {rt.FIFO_ADVICE}")
    allowed = rt.Permissions((0, 0), (8 << 20, 8 << 20), False, refused, (0, 1), 0.95)
    monkeypatch.setattr(rt, "permissions", lambda: allowed)
    found = by_subject(checks_machine.realtime())
    assert found["SCHED_FIFO"].mark == NOTE and "limits.d" in found["SCHED_FIFO"].advice
    assert found["mlockall"].mark == NOTE and "8 MiB" in found["mlockall"].fact


def test_a_check_that_fails_to_run_does_not_stop_the_others():
    def breaks():
        yield Finding("First", "one", OK, "fine")
        raise PermissionError("/proc/x")

    def works():
        yield Finding("Second", "two", OK, "fine")

    findings = doctor.examine([breaks, works])
    assert [finding.mark for finding in findings] == [OK, NOTE, OK]
    assert "PermissionError" in findings[1].fact and findings[1].subject == "breaks"


@pytest.mark.parametrize(("mark", "status"), [(OK, 0), (NOTE, 0), (PROBLEM, 1)])
def test_only_a_problem_makes_the_status_1(monkeypatch, capsys, mark, status):
    monkeypatch.setattr(doctor, "CHECKS", (lambda: [Finding("S", "x", mark, "fact")],))
    assert doctor.run(ARGUMENTS) == status
    assert doctor.run(JSON) == status


def test_json_has_every_finding_and_the_provenance(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "CHECKS", (lambda: [Finding("S", "x", NOTE, "fact", "do")],))
    doctor.run(JSON)
    document = json.loads(capsys.readouterr().out)
    expected = {"section": "S", "subject": "x", "mark": "note", "fact": "fact", "advice": "do"}
    assert document["findings"] == [expected]
    assert document["problems"] == 0 and document["provenance"]["python"]


def test_the_whole_report_fits_80_columns_on_this_machine(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    doctor.run(ARGUMENTS)
    out = capsys.readouterr().out
    too_wide = [line for line in out.splitlines() if len(line) > 80 and " /" not in line]
    assert not too_wide and "\x1b[" not in out
    for section in ("ROS 2", "Python", "Machine", "Inference backends", "Audio"):
        assert section in out.splitlines()


def test_the_placement_of_this_machine_is_shown_with_its_reason():
    found = by_subject(checks_machine.placement())
    assert "thread" in found["policy stages"].fact and "core" in found["why"].fact
    assert found["hardware"].mark == OK


def test_the_hardware_can_be_recorded_and_its_placement_shown_elsewhere(tmp_path, capsys):
    profile = tmp_path / "profile.yaml"
    assert doctor.run(SimpleNamespace(json=False, record_hardware=profile, hardware=None)) == 0
    assert str(profile) in capsys.readouterr().out
    assert doctor.run(SimpleNamespace(json=False, record_hardware=None, hardware=profile)) == 0
    shown = capsys.readouterr().out
    assert "CPU placement" in shown and "not of this machine" in " ".join(shown.split())
    assert "/dev/shm" not in shown


def test_a_profile_that_cannot_be_written_is_a_usage_error_with_the_reason(tmp_path):
    arguments = SimpleNamespace(json=False, record_hardware=tmp_path / "no/x.yaml", hardware=None)
    with pytest.raises(UsageError, match="No such file"):
        doctor.run(arguments)
