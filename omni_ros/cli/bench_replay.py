# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench replay`: what reading a bag and comparing cost beside the policy itself."""

from __future__ import annotations

import argparse
import json
import statistics
import textwrap
import time
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.progress import Bar
from omni_ros.cli.report import format_table, terminal_width, write
from omni_ros.telemetry.provenance import one_line, provenance

#: Share of the policy's own time that reading and comparing should stay below.
AIM = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni bench replay`."""
    add = parser.add_argument
    add("bag", type=Path, metavar="BAG", help="a recording")
    add("--bundle", required=True, metavar="B", help="the bundle that it was recorded with")
    add("--rounds", type=int, default=7, metavar="N",
        help="replays, each beside the policy alone (default 7)")
    add("--threads", type=int, default=1, metavar="N", help="threads of the programs (default 1)")
    add("--robot", default="", metavar="YAML", help="for a bag that does not say")
    add("--json", type=Path, metavar="FILE", help="write all figures to FILE")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; the exit status is 0 whether the aim is met or not."""
    if not 1 <= arguments.rounds <= 1000:
        raise UsageError(f"--rounds {arguments.rounds}: expected 1 to 1000")
    document = {**measure(arguments), "provenance": provenance()}
    write(render(document, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds of each round: the replay as a whole, and the policy on the same observations.

    Opening the bundle counts for neither: it is done once, whatever the length of a bag.
    """
    from omni_ros.bundles.named import bundle_folder
    from omni_ros.replay.bag import Bag
    from omni_ros.replay.contents import read_contents
    from omni_ros.replay.feeding import feed
    from omni_ros.replay.plans import make_plans
    from omni_ros.replay.replaying import Options, replay_with, robot_of
    from omni_ros.replay.running import Runner

    options = Options(robot=arguments.robot)
    with Bag(arguments.bag) as bag:
        contents = read_contents(bag)
        robot, _ = robot_of(contents, arguments.robot)
        runner = Runner(bundle_folder(arguments.bundle), robot, threads=arguments.threads)
        plans = make_plans(contents, robot, runner.fit)
        held = [(plan, images) for plan, images in feed(contents, plans) if images]
    if not held:
        raise UsageError(f"{arguments.bag} has no chunk that can be computed again")
    bar, rounds, verdict = Bar(), [], None
    try:
        for number in range(arguments.rounds + 1):  # the first one warms up
            began = _clocks()
            for plan, images in held:
                runner.run(plan, images)
            alone = _clocks()
            result = replay_with(arguments.bag, runner, options=options)
            ended = _clocks()
            verdict = result.overall.value
            if number:
                rounds.append({
                    "alone": alone[0] - began[0], "replay": ended[0] - alone[0],
                    "alone_cpu": alone[1] - began[1], "replay_cpu": ended[1] - alone[1]})
            bar.show(number / (arguments.rounds + 1), f"round {number}")
    finally:
        bar.end()
        runner.close()
    return {
        "bench": "replay", "bag": str(arguments.bag), "bundle": runner.manifest.name,
        "bag_bytes": _size(arguments.bag), "chunks": len(held), "threads": arguments.threads,
        "verdict": verdict, "rounds": rounds, "aim": AIM,
        "share": [_share(one) for one in rounds],
    }


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the figures as text."""
    count = document["chunks"]
    rows = []
    for name, what in (("alone", "policy alone"), ("replay", "replay")):
        seconds = sorted(one[name] for one in document["rounds"])
        middle = statistics.median(seconds)
        rows.append([what, f"{1e3 * middle / count:.2f}", f"{1e3 * seconds[0] / count:.2f}",
                     f"{1e3 * seconds[-1] / count:.2f}", f"{count / middle:.1f}"])
    share = sorted(document["share"])
    middle = statistics.median(share)
    extra = statistics.median(
        one["replay_cpu"] - one["alone_cpu"] for one in document["rounds"]) / count
    lines = [
        f"reading and comparing: {middle:+.1%} of the policy's own time (lowest {share[0]:+.1%}, highest "
        f"{share[-1]:+.1%} of {len(share)} rounds), {1e3 * extra:.2f} ms an observation, in time of the "
        "processor; aim below "
        f"{document['aim']:.0%}: {'met' if middle < document['aim'] else 'NOT met'}. What is "
        "added hardly depends on the policy: a slower one has a smaller share.",
        one_line(document["provenance"]),
    ]
    title = (f"{document['bundle']} on {document['bag']} ({document['bag_bytes'] / 1e6:.1f} MB, "
             f"{count} chunks, {document['threads']} threads): {document['verdict']}")
    prose = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
             for line in lines]
    return "\n".join([title, "", format_table(
        ("an observation", "p50 ms", "least", "most", "a second"), rows), "", *prose])


def _share(one: dict[str, float]) -> float:
    """Return what a round adds; by the wall's clock where the processor's is too coarse to see it."""
    if one["alone_cpu"] > 0.0:
        return one["replay_cpu"] / one["alone_cpu"] - 1.0
    return one["replay"] / one["alone"] - 1.0


def _clocks() -> tuple[float, float]:
    """Return the time of the wall and of the processor: what others do here counts for the first."""
    return time.perf_counter(), time.process_time()


def _size(bag: Path) -> int:
    files = [bag] if bag.is_file() else [one for one in bag.iterdir() if one.is_file()]
    return sum(one.stat().st_size for one in files)
