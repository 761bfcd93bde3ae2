# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench`: measure a part on this machine, next to a named baseline in the same run."""

from __future__ import annotations

import argparse
import importlib

#: What can be measured: a summary and the module with `add_arguments` and `run`.
BENCHES = {
    "player": (
        "how late the player's ticks are, idle and beside busy processes (needs ROS 2)",
        "omni_ros.cli.bench_player",
    ),
    "policy": (
        "how long a bundle takes for a chunk, next to the same network in PyTorch",
        "omni_ros.cli.bench_policy",
    ),
    "memory": (
        "whether a bundle that runs for long stays the size it was",
        "omni_ros.cli.bench_memory",
    ),
    "graph": (
        "what the policy graph costs beside its programs, and whether it stays its size (needs ROS 2)",
        "omni_ros.cli.bench_graph",
    ),
    "bridge": (
        "whether ticks are later beside a bridge whose link is up, slow, silent or down (needs ROS 2)",
        "omni_ros.cli.bench_bridge",
    ),
    "speech": (
        "how soon a voice begins, what it costs, and whether a recogniser understands it",
        "omni_ros.cli.bench_speech",
    ),
    "talking": (
        "speech through the real nodes: beside a policy, after a stop, goal after goal (needs ROS 2)",
        "omni_ros.cli.bench_talking",
    ),
    "replay": (
        "what reading a bag and comparing cost beside the policy itself",
        "omni_ros.cli.bench_replay",
    ),
    "tabletop": (
        "how often a bundle does what the sentence says, through the real graph (needs ROS 2)",
        "omni_ros.cli.bench_tabletop",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare one sub-subcommand a bench; their modules import nothing heavy at the top."""
    benches = parser.add_subparsers(dest="bench", required=True, metavar="PART")
    for name, (summary, module_name) in BENCHES.items():
        module = importlib.import_module(module_name)
        bench = benches.add_parser(name, help=summary, description=summary)
        module.add_arguments(bench)
        bench.set_defaults(run_bench=module.run)


def run(arguments: argparse.Namespace) -> int:
    """Run the bench that was chosen."""
    return arguments.run_bench(arguments)
