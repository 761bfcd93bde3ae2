# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The demonstration's summary and its report folder, made of a run that never was."""

from __future__ import annotations

import argparse
import json
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("rclpy")
pytest.importorskip("omni_ros.msg")

from omni_ros.cli import demo_report  # noqa: E402
from omni_ros.cli.demo_facts import facts_of, summary  # noqa: E402
from omni_ros.cli.demo_instructions import Done, Step  # noqa: E402
from omni_ros.cli.demo_recorder import commands, joint_positions, nearest, picture  # noqa: E402
from omni_ros.cli.tabletop_graph import ChunkSeen  # noqa: E402
from omni_ros.images import fill  # noqa: E402
from omni_ros.robot import load_robot  # noqa: E402
from omni_ros.robot.files import robot_file  # noqa: E402

ROBOT = load_robot(robot_file(""))
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
NAMES = list(ROBOT.joint_names)


def stamp(time_ns: int):
    from builtin_interfaces.msg import Time

    return Time(sec=time_ns // SECOND, nanosec=time_ns % SECOND)


def in_bytes(message) -> bytes:
    from rclpy.serialization import serialize_message

    return serialize_message(message)


def image(grey: int) -> bytes:
    from sensor_msgs.msg import Image

    message = Image()
    fill(message, np.full((8, 8, 3), grey, np.uint8))
    return in_bytes(message)


def joint_state(time_ns: int, names=NAMES, value: float = 0.1) -> bytes:
    from sensor_msgs.msg import JointState

    message = JointState(name=list(names), position=[value] * len(names))
    message.header.stamp = stamp(time_ns)
    return in_bytes(message)


def trajectory(names=NAMES, after_ns: int = 20_000_000) -> bytes:
    from builtin_interfaces.msg import Duration
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    point = JointTrajectoryPoint(positions=[float(NAMES.index(name)) for name in names],
                                 time_from_start=Duration(nanosec=after_ns))
    return in_bytes(JointTrajectory(joint_names=list(names), points=[point]))


def done(verdict: str = "success", before: str = "", why: str = "") -> Done:
    times = [START + k * SECOND // 10 for k in range(20)]
    chunks = [ChunkSeen(time + 50_000_000, time, 66_666_667, tuple(NAMES), np.zeros((16, 6)),
                        {"vision_encoder": 0.01, "action_head": 0.02}) for time in times[::6]]
    kept = {"front": [(time, image(20 + k)) for k, time in enumerate(times)],
            "wrist": [(time, image(90)) for time in times],
            "joints": [(time, joint_state(time)) for time in times],
            "commands": [(time, trajectory()) for time in times]}
    step = Step("touch", "red", "touch the red block", before)
    return Done(step, 7, verdict, why, 1.9, START, START + SECOND // 2, times[-1], kept, chunks, {})


def status(ticks: int):
    counts = np.zeros(25, int)
    return SimpleNamespace(ticks=ticks, ticks_missed=0, lateness_p50=1e-4, lateness_p99=2e-3,
                           lateness_max=5e-3, refused=counts, limited=counts)


def facts(steps) -> dict:
    graph = SimpleNamespace(to_command={1: 0.05, 2: 0.07}, policy={},
                            chunks=[chunk for step in steps for chunk in step.chunks])
    arguments = argparse.Namespace(policy="expert", bundle="tabletop")
    return {**facts_of(arguments, ROBOT, graph, status(100), status(600), steps), "trouble": []}


def test_the_summary_counts_successes_and_names_what_failed(tmp_path):
    text = summary(facts([done(), done("wrong", why="touched block_blue"), done("timeout")]), tmp_path)
    assert "in 1 of 3 instructions" in text
    assert "wrong    1.9 s  touched block_blue" in text


def test_the_summary_has_latency_chunk_rate_and_tick_lateness(tmp_path):
    text = summary(facts([done()]), tmp_path)
    assert "observation to command  p50 60.0 ms, p99 69.8 ms (2 chunks)" in text
    assert "chunks                  4, 2.1 a second, refused: none" in text
    assert "p50 0.1 ms, p99 2.0 ms, max 5.0 ms" in text
    assert str(tmp_path / "report.html") in text


def test_trouble_is_told_last(tmp_path):
    told = {**facts([done()]), "trouble": ["action_head died (exit code -9)"]}
    assert summary(told, tmp_path).splitlines()[-1] == "not well: action_head died (exit code -9)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    steps = [done(), done("timeout", before="touch the blue block")]
    demo_report.write_report(folder, facts(steps), steps)
    return folder


def test_the_folder_has_the_page_the_pictures_and_the_facts(folder):
    assert {path.name for path in folder.iterdir()} == {
        "report.html", "facts.json", "contact_sheet.png", "joints.png", "seams.png",
        "latencies.png"}


def test_the_facts_say_what_the_page_says(folder):
    known = json.loads((folder / "facts.json").read_text())
    assert known["succeeded"] == 1 and known["steps"][1]["before"] == "touch the blue block"
    page = (folder / "report.html").read_text()
    assert "1 of 2" in page and "touch the blue block … touch the red block" in page


def test_a_run_without_chunks_and_pictures_still_has_a_report(tmp_path):
    bare = done("timeout")
    bare.chunks.clear()
    bare.kept = {name: [] for name in bare.kept}
    demo_report.write_report(tmp_path, facts([bare]), [bare])
    assert "0 of 1" in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "seams.png").exists()


def test_joint_states_of_some_of_the_joints_are_left_out():
    kept = [(START, joint_state(START)), (START, joint_state(START, NAMES[:2]))]
    stamps, positions = joint_positions(kept, NAMES)
    assert stamps.tolist() == [START] and positions.shape == (1, 6)


def test_a_command_is_due_after_its_receipt_and_its_joints_go_by_name():
    times, positions = commands([(START, trajectory(NAMES[::-1]))], NAMES)
    assert times.tolist() == [START + 20_000_000]
    assert positions[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_picture_nearest_to_an_instant_is_taken():
    kept = [(START + k * 100, image(k)) for k in range(5)]
    assert picture(nearest(kept, START + 240))[0, 0, 0] == 2
    assert nearest([], START) is None
