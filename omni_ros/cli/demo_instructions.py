# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni demo`: the arm is told a few things, one scene each, and once something else midway.

The sentences and the scenes are the same every time, and were not chosen by how they turn out.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.cli.demo_words import (
    PATIENCE_S,
    Words,
    intention,
    outcome,
    speech_argument,
)
from omni_ros.cli.launched import launched, say
from omni_ros.cli.report import write
from omni_ros.cli.tabletop_launch import GRAPH, deaths, watching
from omni_ros.requirements import require

START_PATIENCE_S = 180.0
#: When something else is said, seconds after the first sentence: the arm is on its way by then.
CHANGE_S = 0.8
#: The expert's; a policy's is in the robot file.
EXPERT_HORIZON = 8
#: The share of the instructions that has to succeed for the demonstration to have succeeded.
WANTED = 0.75


@dataclass(frozen=True)
class Step:
    """An instruction and what it asks for; `before` was said a moment earlier, "" if nothing."""

    skill: str
    colour: str
    sentence: str
    before: str = ""


STEPS = (
    Step("touch", "red", "touch the red block"),
    Step("touch", "blue", "put your finger on the blue block"),
    Step("pick_up", "green", "pick up the green block"),
    Step("touch", "green", "touch the green block", before="touch the yellow block"),
    Step("pick_up", "blue", "grab the blue block"),
    Step("touch", "yellow", "could you touch the yellow cube"),  # not a sentence of training
    Step("pick_up", "red", "lift the red block"),
    Step("place", "yellow", "put the yellow block on the pad"),
)


@dataclass
class Done:
    """What came of a step; times are nanoseconds of ROS time, `kept` of a DemoRecorder."""

    step: Step
    seed: int
    verdict: str
    why: str
    seconds: float
    told_ns: int
    judged_from_ns: int
    ended_ns: int
    kept: dict[str, list[tuple[int, bytes]]]
    chunks: list[Any]
    blocks: dict[str, np.ndarray]


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration; 1 if too little of it succeeded, or the graph was not well."""
    require("mujoco", "to simulate the table-top world")
    require("matplotlib", "to draw the report's pictures")
    from omni_ros.cli.demo_facts import summary
    from omni_ros.cli.demo_report import write_report

    speech, silent = speech_argument(arguments.launch_arguments)
    command = [*launch_command(arguments), *speech]
    if silent:
        say(f"the arm does not speak: {silent}")
    done: list[Done] = []
    with tempfile.TemporaryDirectory(prefix="omni_demo_") as folder:
        log = Path(folder) / "launch.log"
        with launched(command, log) as (_, check_alive):
            facts = follow_steps(arguments, command, watching(check_alive, log), done)
        facts["trouble"] = deaths(log.read_text(encoding="utf-8", errors="replace"))
    say("writing the report ...")
    write_report(arguments.report, facts, done)
    write(summary(facts, arguments.report))
    well = facts["missed"] * 100 <= facts["ticks"] and not facts["trouble"]
    return 0 if well and facts["succeeded"] >= WANTED * len(done) else 1


def launch_command(arguments: argparse.Namespace) -> list[str]:
    """Return the command that launches the graph."""
    if arguments.policy == "expert":
        return [*GRAPH, "policy:=none", *arguments.launch_arguments]
    from omni_ros.bundles.named import bundle_folder

    folder = bundle_folder(arguments.bundle).absolute()  # refused here if there is none
    return [*GRAPH, "policy:=bundle", f"bundle:={folder}", *arguments.launch_arguments]


def follow_steps(
    arguments: argparse.Namespace, command: list[str], check_alive: Any, done: list[Done]
) -> dict[str, Any]:
    """Say one sentence after the other; what came of each is appended to `done`."""
    from omni_ros.cli.demo_facts import facts_of
    from omni_ros.cli.demo_recorder import DemoRecorder
    from omni_ros.cli.tabletop_episode import Scenes
    from omni_ros.cli.tabletop_expert import ExpertSource
    from omni_ros.cli.tabletop_graph import TabletopGraph
    from omni_ros.robot import load_robot
    from omni_ros.robot.files import robot_file

    given = [word.partition(":=")[2] for word in command if word.startswith("robot:=")]
    robot, scenes = load_robot(robot_file(given[-1] if given else "")), Scenes()
    with TabletopGraph(check_alive) as graph:
        say("starting the world, the policy and the player "
            f"(ROS_DOMAIN_ID={os.environ.get('ROS_DOMAIN_ID') or 0}) ...")
        graph.wait_until_up(START_PATIENCE_S, policy=arguments.policy != "expert")
        recorder, words = DemoRecorder(graph, robot), Words(
            graph, PATIENCE_S if "speech:=true" in command else 0.0)
        expert = None
        if arguments.policy == "expert":
            expert = ExpertSource(graph, robot, EXPERT_HORIZON)
        before = graph.reset_lateness()
        for number, step in enumerate(STEPS):
            done.append(run_step(
                graph, recorder, scenes, step, arguments.seed + number, words, expert))
            last = done[-1]
            words.say(outcome(last.verdict))
            say(f"  {number + 1}  {told(step)}: {last.verdict}, {last.seconds:.1f} s"
                + (f" ({last.why})" if last.verdict == "wrong" else ""))
        after = graph.fresh_status()
        words.finish()
        return facts_of(arguments, robot, graph, before, after, done)


def run_step(
    graph: Any, recorder: Any, scenes: Any, step: Step, seed: int, words: Words,
    expert: Any = None,
) -> Done:
    """Run one step in a scene of its own."""
    from omni_ros.cli.tabletop_episode import follow, word
    from omni_ros.world.judge import Judge
    from omni_ros.world.scene import PAD_NAME
    from omni_ros.world.tasks import Task, task_of

    first_task = task_of(step.before) if step.before else Task(step.skill, step.colour)
    words.say(intention(first_task.skill, first_task.colour))
    graph.begin(seed)
    yaws, pad = scenes.of(seed)
    if expert is not None:
        expert.begin(yaws, pad)
    first = len(graph.chunks)
    recorder.begin()
    try:
        told_ns = graph.now_ns()
        if step.before:
            graph.tell(step.before)
            follow(graph, [], expert, task_of(step.before), CHANGE_S)
        look = graph.look()
        task = Task(step.skill, step.colour)
        judge = Judge(task, look.objects, pad=look.objects.get(PAD_NAME, pad), start_s=look.seconds)
        judged_from_ns = graph.now_ns()
        if expert is not None and step.before:
            expert.begin(yaws, pad)  # a chunk of the new task at once
        if step.before:
            words.say(f"No. {intention(step.skill, step.colour)}")
        graph.tell(step.sentence)
        follow(graph, [judge], expert, task)
        ended_ns = graph.now_ns()
        graph.tell("")
        last = graph.look()
    finally:
        kept = recorder.end()
    return Done(step, seed, word(judge), judge.reason, judge.seconds, told_ns, judged_from_ns,
                ended_ns, kept, graph.chunks[first:], last.objects)


def told(step: Step) -> str:
    """Return what was said, as one line."""
    return f"{step.before} ... {step.sentence}" if step.before else step.sentence
