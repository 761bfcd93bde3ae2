# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The folder that `omni demo` leaves behind: a page, its pictures, and the facts as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.cli.demo_facts import ms, rows_of
from omni_ros.cli.demo_recorder import commands, joint_positions, nearest, picture
from omni_ros.report.contact_sheet import Strip, contact_sheet
from omni_ros.report.html import Picture, Section, Table, page
from omni_ros.report.plots import (
    Limits, Rows, Span, chunk_seams, joints_against_limits, latencies)
from omni_ros.robot import load_robot
from omni_ros.robot.files import robot_file
from omni_ros.telemetry.provenance import one_line

#: Joints whose chunk seams are shown; more would not fit a phone.
SEAM_JOINTS = 3
#: Seconds between two steps in the plots, where the world was reset.
GAP_S = 0.5


def write_report(folder: Path, facts: dict[str, Any], done: Sequence[Any]) -> None:
    """Write report.html, contact_sheet.png, the plots and facts.json."""
    robot = load_robot(robot_file(facts["robot"]))
    pictures = {"contact_sheet.png": sheet(done)}
    pictures["joints.png"] = joints_picture(robot, done)
    pictures["seams.png"] = seams_picture(robot, done)
    figures = facts["latencies"]
    totals = {"observation to chunk": figures["to_chunk"]} if figures["to_chunk"] else {}
    totals["observation to command"] = figures["to_command"]
    pictures["latencies.png"] = latencies(
        {name: np.array(values) for name, values in figures["stages"].items()},
        {name: np.array(values) for name, values in totals.items()})
    for name, png in pictures.items():
        if png:
            (folder / name).write_bytes(png)
    (folder / "facts.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    (folder / "report.html").write_text(html(facts, pictures), encoding="utf-8")


def sheet(done: Sequence[Any]) -> bytes:
    """Return one strip a step: four frames of the front camera, the last of the wrist's."""
    strips = []
    for step in done:
        begin, end = step.judged_from_ns, step.ended_ns
        times = [begin, begin + (end - begin) // 3, begin + 2 * (end - begin) // 3, end]
        if step.step.before:
            times = [step.told_ns, begin, (begin + end) // 2, end]
        labels = [f"{(time - step.told_ns) * 1e-9:.1f} s" for time in times]
        if step.step.before:
            labels[1] += ", told anew"
        frames = [nearest(step.kept["front"], time) for time in times]
        frames.append(nearest(step.kept["wrist"], end))
        labels.append("wrist camera")
        shown = [(picture(frame), label) for frame, label in zip(frames, labels) if frame]
        caption = f"“{step.step.sentence}”"
        if step.step.before:
            caption = f"“{step.step.before}” … {caption}"
        strips.append(Strip(caption, step.verdict, f"{step.seconds:.1f} s",
                            [frame for frame, _ in shown], [label for _, label in shown]))
    return contact_sheet(strips, "What it was told, and what the front camera saw")


def joints_picture(robot: Any, done: Sequence[Any]) -> bytes:
    """Return the joints of all steps, one after the other."""
    times, positions, spans, start = [], [], [], 0.0
    for step in done:
        stamps, values = joint_positions(step.kept["joints"], robot.joint_names)
        length = (step.ended_ns - step.told_ns) * 1e-9
        spans.append(Span(start, start + length, step.step.sentence, step.verdict))
        times += [start + (stamps - step.told_ns) * 1e-9, [start + length + GAP_S / 2]]
        positions += [values, np.full((1, len(robot.joint_names)), np.nan)]
        start += length + GAP_S
    limits = Limits(robot.lower, robot.upper, robot.margin)
    return joints_against_limits(
        np.concatenate(times), np.concatenate(positions), robot.joint_names, limits, spans)


def seams_picture(robot: Any, done: Sequence[Any]) -> bytes | None:
    """Return chunks and command of the step that was told anew; None if nothing was recorded."""
    usable = [step for step in done if len(step.chunks) >= 2 and step.kept["commands"]]
    if not usable:
        return None
    step = next((step for step in usable if step.step.before), usable[0])
    names = robot.joint_names[:SEAM_JOINTS]
    chunks = []
    for chunk in step.chunks:
        columns = [chunk.joint_names.index(joint.policy_name) if joint.policy_name in
                   chunk.joint_names else chunk.joint_names.index(joint.name)
                   for joint in robot.joints[:SEAM_JOINTS]]
        due = chunk.stamp_ns + chunk.dt_ns * np.arange(1, len(chunk.values) + 1)
        chunks.append(Rows((due - step.told_ns) * 1e-9, chunk.values[:, columns]))
    times, values = commands(step.kept["commands"], names)
    command = Rows((times - step.told_ns) * 1e-9, values)
    return chunk_seams(chunks, command, names, f"Chunk seams of instruction {done.index(step) + 1}")


def html(facts: dict[str, Any], pictures: dict[str, bytes | None]) -> str:
    """Return the page."""
    steps, figures = facts["steps"], facts["latencies"]
    late = facts["lateness"]
    table = Table(("", "told", "verdict", "after"), [
        (str(number), f"{step['before']} … {step['sentence']}" if step["before"] else
         step["sentence"], step["verdict"] + (f": {step['why']}" if step["verdict"] == "wrong"
                                              else ""), f"{step['seconds']:.1f} s")
        for number, step in enumerate(steps, 1)])
    tiles = [
        (f"{facts['succeeded']} of {len(steps)}", "instructions succeeded"),
        (ms(figures["to_command_p50"]), f"from picture to command, p50; p99 "
                                        f"{ms(figures['to_command_p99'])}"),
        ("-" if facts["chunk_rate_hz"] is None else f"{facts['chunk_rate_hz']:.1f} /s",
         "chunks decided while moving"),
        (ms(late["p99"]), f"tick lateness, p99; {facts['missed']} of {facts['ticks']} missed"),
    ]
    sections = [
        Section("Instructions", "One scene each, with the blocks in places the policy has not "
                "seen. A judge that knows where everything is says how it went.", [table]),
        Section("What it saw", "The pictures are those that went to the policy, enlarged.",
                shown(pictures, "contact_sheet.png", "frames of each instruction")),
        Section("Joints", "Measured positions between the limits of the robot file, "
                "instruction by instruction.",
                shown(pictures, "joints.png", "joint positions over time")),
        Section("Chunk seams", "The policy decides a chunk of actions at a time. Where one takes "
                "over from the last, the command must not jump. The first one is eased into from "
                "rest; where the arm is told something else, the next one leads elsewhere.",
                shown(pictures, "seams.png", "rows of successive chunks and the command")),
        Section("Latency", "Every time counts from the stamp of the picture.",
                shown(pictures, "latencies.png", "latency by stage")),
        Section("Figures", "As in facts.json.", [Table(("", ""), rows_of(facts))]),
    ]
    lead = f"Policy: {facts['source']}"
    if facts["bundle"]:
        recipes = sorted(set(facts["bundle"]["recipes"].values()))
        lead += f" ({', '.join(recipes)}), {facts['execution_horizon']} rows of each chunk played"
    lead += f". Robot: {facts['robot']}, simulated; world, policy and player are real ROS 2 nodes."
    return page("The arm does what it is told", lead, tiles, sections,
                one_line(facts["provenance"]))


def shown(pictures: dict[str, bytes | None], name: str, alt: str) -> list[Picture]:
    """Return the picture of a name as the part of a section, nothing if it was not drawn."""
    png = pictures.get(name)
    return [Picture(png, alt)] if png else []
