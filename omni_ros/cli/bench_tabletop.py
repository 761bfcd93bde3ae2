# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench tabletop`: how often the policy does what the sentence says, through the real graph.

World, policy nodes and player run as anyone would launch them, in a DDS domain of their own. Each
trial is an episode of the world with a seed that training never saw, a sentence, and the judge's
verdict. Bundles that are compared take turns on the same seeds, block by block, so that what else
the machine does meets all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.launched import launched, own_domain, refuse_second_player, say
from omni_ros.cli.report import terminal_width, write
from omni_ros.cli.tabletop_launch import GRAPH, changed_robot, watching
from omni_ros.cli.tabletop_trials import FIRST_SEED, Trial, blocks, plan_trials
from omni_ros.requirements import require
from omni_ros.telemetry.provenance import provenance

SKILLS = ("touch", "pick_up", "place", "all")
DEFAULT_BUNDLE = "tabletop"
EXPERT = "expert"
#: Loading and warming up a bundle takes some seconds on two busy cores.
START_PATIENCE_S = 180.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni bench tabletop`."""
    add = parser.add_argument
    add("--episodes", type=int, default=50, metavar="N", help="of each skill (default 50)")
    add("--skill", choices=SKILLS, default="touch", help="default touch")
    add("--seed", type=int, default=FIRST_SEED, metavar="N",
        help=f"of the first episode; the others follow (default {FIRST_SEED})")
    add("--bundle", nargs="+", metavar="BUNDLE", help="paths or names; several are compared on the "
        f"same episodes (default {DEFAULT_BUNDLE})")
    add("--phrasing", choices=("trained", "held_out"), default="trained",
        help="sentences that training used, or others (default trained)")
    add("--appearance", choices=("plain", "varied"), default="plain",
        help="the scene as built, or light, tints and camera poses drawn from each seed")
    add("--control", choices=("swap", "blank", "unknown"), help="swap: the sentence names another "
        "colour; blank: black pictures; unknown: it asks for nothing that was taught. What is left "
        "tells what the policy goes by")
    add("--expert", action="store_true",
        help="chunks from the scripted expert and not from a policy: the upper bound")
    add("--horizon", type=int, metavar="ROWS", help="rows played of a chunk before the next takes "
        "over (default: the robot file's execution_horizon)")
    add("--composition", choices=("separate", "single"),
        help="of the policy nodes (default: the launch file's)")
    add("--transport", choices=("auto", "inline"), help="between them (default: the launch file's)")
    add("--robot", default="", help="robot file or name (default: the simulated one)")
    add("--block", type=int, default=25, metavar="N",
        help="episodes until the next bundle has its turn (default 25)")
    add("--domain", type=int, help="ROS_DOMAIN_ID to use (default: one of its own)")
    add("--json", metavar="FILE", type=Path, help="write every episode to FILE as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the bench; print a table and write the JSON file, also of a run that was cut short."""
    check(arguments)
    domain = own_domain(arguments.domain, "to run the nodes")
    require("mujoco", "to simulate the table-top world")
    from omni_ros.cli.player_probe import find_player
    from omni_ros.cli.tabletop_table import document, render

    facts = provenance()
    trials = plan(arguments)
    sources = [EXPERT] if arguments.expert else resolve(arguments.bundle or [DEFAULT_BUNDLE])
    refuse_second_player(find_player(), str(domain))
    runs: list[dict[str, Any]] = []
    trouble: str | None = None
    with tempfile.TemporaryDirectory(prefix="omni_bench_") as folder:
        # A trip of another player of this name must not stop this one, nor the other way round.
        os.environ["OMNI_ROS_STATE"] = folder
        robot = robot_of(arguments, Path(folder))
        horizon = horizon_of(arguments, robot)
        try:
            for number, part in enumerate(blocks(trials, arguments.block)):
                # Who comes first alternates: the first may leave caches or heat to the second.
                for source in sources[:: 1 if number % 2 == 0 else -1]:
                    run_block(arguments, source, robot, part, Path(folder), runs)
        except (RuntimeError, KeyboardInterrupt) as error:
            trouble = str(error) or "interrupted"
            if not any(run["episodes"] for run in runs):
                raise
    found = document(arguments, sources, horizon, runs, facts, trouble)
    write(render(found, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        say(f"written to {arguments.json}")
    return 0 if trouble is None else 1


def check(arguments: argparse.Namespace) -> None:
    """Refuse options out of range, or that do not go together.

    :raises UsageError: naming the option, what was given and what is expected.
    """
    for name, value, low, high in (
        ("--episodes", arguments.episodes, 1, 100_000), ("--block", arguments.block, 1, 100_000),
        ("--seed", arguments.seed, 0, 2**62), ("--domain", arguments.domain, 0, 101),
        ("--horizon", arguments.horizon, 1, 1000),
    ):
        if value is not None and not low <= value <= high:
            raise UsageError(f"{name} {value}: expected {low} to {high}")
    if arguments.expert and arguments.bundle:
        raise UsageError("--expert and --bundle: the chunks come from one of them; leave one out")
    if arguments.expert and arguments.control:
        raise UsageError(f"--expert and --control {arguments.control}: the expert reads no sentence "
                         "and sees no pictures; leave one out")
    if arguments.json is not None and not arguments.json.absolute().parent.is_dir():
        raise UsageError(f"--json {arguments.json}: its folder is not there; make it first")


def plan(arguments: argparse.Namespace) -> list[Trial]:
    """Return the trials that were asked for."""
    from omni_ros.world.tasks import COLOURS, Task, phrase

    held_out = arguments.phrasing == "held_out"
    return plan_trials(
        SKILLS[:-1] if arguments.skill == "all" else [arguments.skill], arguments.episodes,
        arguments.seed, COLOURS,
        lambda skill, colour, random: phrase(Task(skill, colour), random, held_out=held_out),
        control=arguments.control)


def resolve(bundles: Sequence[str]) -> list[str]:
    """Return the folder of each bundle, as text; refused here if there is none."""
    from omni_ros.bundles.named import bundle_folder

    folders = [str(bundle_folder(bundle).absolute()) for bundle in bundles]
    twice = sorted({folder for folder in folders if folders.count(folder) > 1})
    if twice:
        raise UsageError(f"--bundle names {', '.join(twice)} twice; a bundle has one row")
    return folders


def robot_of(arguments: argparse.Namespace, folder: Path) -> Path:
    """Return the robot file to use: a copy with what the options change."""
    from omni_ros.cli.tabletop_blank import TOPIC

    policy, cameras = {}, {}
    if arguments.horizon is not None and not arguments.expert:
        policy["execution_horizon"] = arguments.horizon
    if arguments.control == "blank":
        # A black picture is what the nodes rightly take for a covered camera.
        policy["blind_std"] = 0.0
        cameras = {name: TOPIC.format(name) for name in ("front", "wrist")}
    return changed_robot(arguments.robot, folder, policy=policy, cameras=cameras)


def horizon_of(arguments: argparse.Namespace, robot: Path) -> int:
    """Return how many rows of a chunk are played before the next takes over."""
    from omni_ros.robot import load_robot

    if arguments.horizon is not None:
        return arguments.horizon
    policy = load_robot(robot).policy
    if policy is None:
        raise UsageError(f"{robot} has no section `policy`; add it, or give --horizon")
    return policy.execution_horizon


def run_block(
    arguments: argparse.Namespace, source: str, robot: Path, trials: Sequence[Trial], folder: Path,
    runs: list[dict[str, Any]],
) -> None:
    """Run some trials in a graph of their own; what was measured is appended to `runs`.

    :raises RuntimeError: the graph did not come up or a node died; `runs` has what was measured
        until then.
    """
    from omni_ros.cli.tabletop_blank import BlankCameras
    from omni_ros.cli.tabletop_episode import Scenes, check_chunks, run_trial
    from omni_ros.cli.tabletop_expert import ExpertSource
    from omni_ros.cli.tabletop_graph import TabletopGraph
    from omni_ros.cli.tabletop_table import block_figures
    from omni_ros.robot import load_robot

    name = Path(source).name
    say(f"{name}: starting the graph ...")
    log = folder / "launch.log"
    scenes, horizon = Scenes(), horizon_of(arguments, robot)
    with launched(command(arguments, source, robot), log) as (_, check_alive):
        with TabletopGraph(watching(check_alive, log)) as graph:
            if arguments.control == "blank":
                BlankCameras(graph.node)
            graph.wait_until_up(START_PATIENCE_S, policy=source != EXPERT)
            expert = ExpertSource(graph, load_robot(robot), horizon) if source == EXPERT else None
            before = graph.reset_lateness()
            results: list[Any] = []
            try:
                for trial in trials:
                    results.append(run_trial(graph, trial, scenes, expert))
                    tell(name, results[-1])
                    check_chunks(results, graph)
            finally:
                if results:
                    runs.append({"source": source, **block_figures(graph, before, results)})


def command(arguments: argparse.Namespace, source: str, robot: Path) -> list[str]:
    """Return the command that launches the graph."""
    policy = ["policy:=none"] if source == EXPERT else ["policy:=bundle", f"bundle:={source}"]
    words = [*GRAPH, *policy, f"robot:={robot.absolute()}"]
    for option in ("composition", "transport"):
        value = getattr(arguments, option)
        words += [f"{option}:={value}"] if value else []
    if arguments.appearance != "plain":
        words.append(f"appearance:={arguments.appearance}")
    return words


def tell(name: str, result: Any) -> None:
    """Say on standard error how a trial went."""
    trial = result.trial
    also = f", as told ({trial.told}) {result.told_verdict}" if trial.told != trial.colour else ""
    say(f"{name}: {trial.seed} {trial.sentence!r}: {result.verdict}{also}, {result.seconds:.1f} s"
        + (f", {result.why}" if result.verdict == "wrong" else ""))
