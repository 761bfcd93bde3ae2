# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench memory`: does a policy that runs for hours stay the size it was?"""

from __future__ import annotations

import argparse
import gc
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.baseline import percentile
from omni_ros.cli.launched import say
from omni_ros.cli.policy_report import render_memory
from omni_ros.cli.policy_worker import PICTURE, TASK, resident
from omni_ros.cli.report import terminal_width, write
from omni_ros.telemetry.provenance import provenance

GROWTH_AIM, CALL_AIM = 1_000_000, 64 * 1024
#: Calls looked into after the timed ones: looking takes time and memory itself.
TRACED = 20
#: Chunks between two looks at the resident memory.
EVERY = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni bench memory`."""
    add = parser.add_argument
    add("bundle", type=Path, metavar="BUNDLE")
    add("--chunks", type=int, default=10_000, metavar="N", help="chunks (default 10000)")
    add("--warm-up", type=int, default=200, metavar="N", help="chunks before them (default 200)")
    add("--threads", type=int, default=1, metavar="N", help="threads (default 1)")
    add("--json", metavar="FILE", type=Path, help="write all figures to FILE as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the bench, print a table and write the JSON file. Exit status 1 if an aim is missed."""
    for name, value in (("--chunks", arguments.chunks), ("--warm-up", arguments.warm_up)):
        if not 1 <= value <= 10_000_000:
            raise UsageError(f"{name} {value}: expected 1 to 10000000")
    if not 1 <= arguments.threads <= 1024:
        raise UsageError(f"--threads {arguments.threads}: expected 1 to 1024")
    document = measure(arguments)
    write(render_memory(document, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        say(f"written to {arguments.json}")
    return 0 if document["passed"] else 1


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the chunks; return the document, bytes and seconds."""
    import numpy as np

    from omni_ros.bundles import open_bundle
    from omni_ros.policy.observation import Observation
    from omni_ros.policy.smolvla import SmolVLAPolicy
    from omni_ros.programs import set_threads

    facts = provenance()
    set_threads(arguments.threads)
    policy = SmolVLAPolicy(open_bundle(arguments.bundle))
    sizes = policy.manifest.dimensions
    rng = np.random.default_rng(0)
    views = [
        {name: rng.integers(0, 256, (*PICTURE, 3), np.uint8) for name in policy.cameras}
        for _ in range(2)
    ]
    states = rng.normal(0, 10, (2, sizes.state)).astype(np.float32)
    rows = min(3, sizes.chunk - 1)
    leftover = None

    def chunk(index: int) -> float:
        nonlocal leftover
        started = time.perf_counter()
        observation = Observation(views[index % 2], states[index % 2], index)
        # A prompt changes now and then, and chunks follow each other, as on a robot.
        task = TASK if index % 50 else "close the door"
        result = policy.infer(observation, task, seed=1, leftover=leftover, delay=1)
        leftover = result.normalised[rows:] if rows else None
        return time.perf_counter() - started

    say(f"warming up with {arguments.warm_up} chunks ...")
    for index in range(arguments.warm_up):
        chunk(index)
    seconds = np.zeros(arguments.chunks)
    gc.collect()
    before, most = resident(), 0
    for index in range(arguments.chunks):
        seconds[index] = chunk(index)
        if index % EVERY == EVERY - 1:
            most = max(most, resident() - before)
    gc.collect()
    growth = resident() - before
    largest = largest_call(chunk)
    policy.close()
    return {
        "bench": "memory",
        "bundle": policy.manifest.name,
        "chunks": arguments.chunks,
        "warm_up": arguments.warm_up,
        "threads": arguments.threads,
        "p50": percentile(seconds.tolist(), 0.5),
        "p99": percentile(seconds.tolist(), 0.99),
        "max": float(seconds.max()),
        "resident": before,
        "growth": growth,
        "growth_most": max(most, growth),
        "largest_call": largest,
        "traced": TRACED,
        "growth_aim": GROWTH_AIM,
        "call_aim": CALL_AIM,
        "passed": bool(growth <= GROWTH_AIM and largest <= CALL_AIM),
        "provenance": facts,
    }


def largest_call(chunk: Any) -> int:
    """Return the most bytes that one of some calls held beyond what was there before it."""
    tracemalloc.start()
    try:
        largest = 0
        for index in range(TRACED):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            chunk(index)
            largest = max(largest, tracemalloc.get_traced_memory()[1] - before)
        return largest
    finally:
        tracemalloc.stop()
