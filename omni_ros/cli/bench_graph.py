# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench graph`: what the policy graph costs beside its programs; whether it stays its size.

The stages run as launched for a robot, fed by made-up cameras of any size and number (as many as
the bundle has), and the player takes their chunks in a dry run. The cost of the graph is the time
from an observation's stamp to its chunk, less the time that its programs ran. With `--soak` one
composition runs for long, and what its processes hold is watched.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.children import child_environment
from omni_ros.cli.launched import launched, own_domain, refuse_second_player, say
from omni_ros.cli.processes import group_that_ends_with_parent
from omni_ros.cli.report import format_table, write
from omni_ros.telemetry.provenance import one_line, provenance

COMPOSITIONS = ("single", "separate")
START_PATIENCE_S = 180.0
#: Before what is held is compared: caches of the middleware and the first collections are over.
SETTLE_S = 60.0
#: What may be held more at the end of a soak than after settling.
GROWTH_KB, GROWTH_FILES, GROWTH_THREADS = 2048, 0, 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni bench graph`."""
    add = parser.add_argument
    add("bundle", metavar="BUNDLE", help="a path or the name of an installed one")
    add("--composition", choices=[*COMPOSITIONS, "both"], default="both")
    add("--transport", choices=["auto", "inline"], default="auto")
    add("--seconds", type=float, default=30.0, help="length of each window (default 30)")
    add("--size", default="640x480", metavar="WxH", help="of the pictures (default 640x480)")
    add("--rate", type=float, default=30.0, help="pictures a second of each camera (default 30)")
    add("--horizon", type=int, help="rows played of a chunk before the next (default: 1, the most "
        "chunks that there can be)")  # fmt: skip
    add("--soak", type=float, metavar="MINUTES", help="run this long and watch what is held")
    add("--domain", type=int, help="ROS_DOMAIN_ID to use (default: one of its own)")
    add("--json", metavar="FILE", type=Path, help="write all figures to FILE as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the bench; 1 if a soak grew or left shared memory behind."""
    width, height = _check(arguments)
    domain = own_domain(arguments.domain, "to run the nodes")
    from omni_ros.bundles.manifest import read_manifest
    from omni_ros.bundles.named import bundle_folder
    from omni_ros.cli.graph_robot import robot_for
    from omni_ros.cli.player_probe import find_player

    folder = bundle_folder(arguments.bundle)
    manifest = read_manifest(folder)
    refuse_second_player(find_player(), str(domain))
    wanted = COMPOSITIONS if arguments.composition == "both" else (arguments.composition,)
    document: dict[str, Any] = {
        "bench": "graph", "bundle": manifest.name, "cameras": len(manifest.cameras),
        "size": [width, height], "rate_hz": arguments.rate,
        "transport": arguments.transport, "provenance": provenance(), "windows": [],
    }
    with tempfile.TemporaryDirectory(prefix="omni_bench_") as scratch:
        # A trip of another player of this name must not stop this one, nor the other way round.
        os.environ["OMNI_ROS_STATE"] = scratch
        robot = robot_for(manifest, Path(scratch), horizon=arguments.horizon or 1)
        for composition in wanted:
            document["windows"].append(
                _window(arguments, folder, robot, composition, (width, height), Path(scratch)))
    write(render(document))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        say(f"written to {arguments.json}")
    return 1 if any(window["faults"] for window in document["windows"]) else 0


def _check(arguments: argparse.Namespace) -> tuple[int, int]:
    try:
        width, height = (int(side) for side in arguments.size.lower().split("x"))
    except ValueError:
        raise UsageError(f"--size {arguments.size}: write WIDTHxHEIGHT, as in 640x480") from None
    if not (16 <= width <= 8192 and 16 <= height <= 8192):
        raise UsageError(f"--size {arguments.size}: expected 16 to 8192 pixels a side")
    if not 1.0 <= arguments.rate <= 240.0:
        raise UsageError(f"--rate {arguments.rate:g}: expected 1 to 240 pictures a second")
    if not 1.0 <= arguments.seconds <= 3600.0:
        raise UsageError(f"--seconds {arguments.seconds:g}: expected 1 to 3600")
    if arguments.soak is not None and not 2.0 <= arguments.soak <= 1440.0:
        raise UsageError(f"--soak {arguments.soak:g}: expected 2 to 1440 minutes")
    if arguments.soak is not None and arguments.composition == "both":
        raise UsageError("--soak watches one composition; say which with --composition")
    if arguments.domain is not None and not 0 <= arguments.domain <= 101:
        raise UsageError(f"--domain {arguments.domain}: expected 0 to 101")
    if arguments.json is not None and not arguments.json.absolute().parent.is_dir():
        raise UsageError(f"--json {arguments.json}: its folder is not there; make it first")
    return width, height


def _window(arguments: argparse.Namespace, bundle: Path, robot: Path, composition: str,
            size: tuple[int, int], scratch: Path) -> dict[str, Any]:
    """Launch one composition, measure, end it, and see what it leaves behind."""
    from omni_ros.cli.graph_watch import ChunkWatch, graph_processes, rings
    from omni_ros.robot import load_robot

    command = ["ros2", "launch", "omni_ros", "vla.launch.py", "world:=false", "policy:=bundle",
               f"bundle:={bundle.absolute()}", f"robot:={robot}", "dry_run:=true",
               f"composition:={composition}", f"transport:={arguments.transport}",
               "instruction:=pick up the red block", "respawn:=false"]
    log = scratch / f"launch_{composition}.log"
    with launched(command, log) as (process, check_alive):
        picture = [str(side) for side in size] + [str(arguments.rate)]
        sensors = [subprocess.Popen(
            [sys.executable, "-m", "omni_ros.cli.graph_sensors", str(robot), name, *picture],
            env=child_environment(), cwd="/", preexec_fn=group_that_ends_with_parent())
            for name in ("joints", *load_robot(robot).cameras)]

        def check() -> None:
            check_alive()
            ended = [sensor.returncode for sensor in sensors if sensor.poll() is not None]
            if ended:
                raise RuntimeError(f"made-up sensors ended with status {ended[0]}")

        try:
            with ChunkWatch(check) as watch:
                say(f"{composition}: starting, waiting for chunks ...")
                watch.wait_for_chunks(20, START_PATIENCE_S)
                processes = graph_processes(process.pid)
                if arguments.soak is not None:
                    window = _soak(watch, processes, arguments.soak * 60.0)
                else:
                    window = _measure(watch, processes, arguments.seconds)
        finally:
            for sensor in sensors:
                sensor.terminate()
            for sensor in sensors:
                sensor.wait()
    left = [path.name for path in rings(processes.values())]
    if left:
        window["faults"].append(f"left in shared memory: {', '.join(left)}")
    return {"composition": composition, "left_in_shared_memory": left, **window}


def _measure(watch: Any, processes: dict[str, int], seconds: float) -> dict[str, Any]:
    from omni_ros.cli.graph_watch import cpu_of, sample

    say(f"measuring {seconds:g} s ...")
    watch.costs.clear()
    before, began = cpu_of(processes), time.monotonic()
    watch.spin(seconds)
    elapsed = time.monotonic() - began
    used = {name: (spent - before[name]) / elapsed for name, spent in cpu_of(processes).items()}
    held = sample(processes, began)
    return {"seconds": elapsed, "faults": [], "load_average": os.getloadavg()[0],
            "processes": {name: {"pss_kb": held.processes[name].resident_kb, "cpu": used[name]}
                          for name in processes},
            "rings_kb": held.ring_kb, **cost_figures(watch.costs, elapsed)}


def cost_figures(costs: list[Any], seconds: float) -> dict[str, Any]:
    """Return p50, p99 and largest of what chunks took, in milliseconds, and chunks a second."""
    import numpy as np

    def figures(values: list[float]) -> dict[str, float]:
        ranked = 1e3 * np.asarray(values)
        return {"p50": float(np.percentile(ranked, 50)), "p99": float(np.percentile(ranked, 99)),
                "max": float(ranked.max())}

    if not costs:
        raise RuntimeError("no chunk came in the window")
    names = list(dict.fromkeys(name for cost in costs for name in cost.stages))
    return {
        "chunks": len(costs), "chunks_per_s": len(costs) / seconds,
        "graph_ms": figures([cost.graph for cost in costs]),
        "own_ms": figures([cost.own for cost in costs]),
        "total_ms": figures([cost.total for cost in costs]),
        "to_receipt_ms": figures([cost.to_receipt for cost in costs]),
        "stages_ms": {name: figures([cost.stages.get(name, 0.0) for cost in costs])
                      for name in names},
    }


def _soak(watch: Any, processes: dict[str, int], seconds: float) -> dict[str, Any]:
    from omni_ros.cli.graph_watch import sample

    say(f"settling for {min(SETTLE_S, seconds / 2):g} s, then watching {seconds / 60:g} min ...")
    began = time.monotonic()
    watch.spin(min(SETTLE_S, seconds / 2))
    watch.costs.clear()
    samples, started = [sample(processes, began)], time.monotonic()
    while (left := seconds - (time.monotonic() - started)) > 0:
        watch.spin(min(left, 10.0))
        samples.append(sample(processes, began))
        del watch.costs[:-20000]
    rows, faults = {}, []
    for name in processes:
        first, last = samples[0].processes[name], samples[-1].processes[name]
        most = max(taken.processes[name].resident_kb for taken in samples)
        rows[name] = {"pss_kb": [first.resident_kb, last.resident_kb, most],
                      "files": [first.files, last.files], "threads": [first.threads, last.threads]}
        for what, grown, limit in (("kB", last.resident_kb - first.resident_kb, GROWTH_KB),
                                   ("files", last.files - first.files, GROWTH_FILES),
                                   ("threads", last.threads - first.threads, GROWTH_THREADS)):
            if grown > limit:
                faults.append(f"{name} holds {grown} {what} more after {seconds / 60:g} min; "
                              f"at most {limit} were expected")
    if samples[-1].rings > samples[0].rings:
        faults.append(f"{samples[-1].rings} rings at the end, {samples[0].rings} at the start")
    return {"seconds": seconds, "faults": faults, "soak": rows, "load_average": os.getloadavg()[0],
            "rings": [samples[0].rings, samples[-1].rings],
            **cost_figures(watch.costs, time.monotonic() - started)}


def render(document: dict[str, Any]) -> str:
    """Return the report as text."""
    width, height = document["size"]
    title = (f"{document['bundle']}: {document['cameras']} cameras of {width}x{height} at "
             f"{document['rate_hz']:g} Hz, transport {document['transport']}")
    lines = [title, ""]
    rows = []
    for window in document["windows"]:
        cells = [f"{window[key]['p50']:.1f} / {window[key]['p99']:.1f} / {window[key]['max']:.1f}"
                 for key in ("graph_ms", "own_ms", "total_ms")]
        rows.append([window["composition"], str(window["chunks"]), f"{window['chunks_per_s']:.1f}",
                     *cells])
    header = ("composition", "chunks", "a second", "graph ms", "from receipt", "stamp to chunk ms")
    lines += [format_table(header, rows), "",
              "p50 / p99 / max. graph: from the observation's stamp to its chunk, without the "
              "programs; from receipt: the same without the sending of the pictures."]
    for window in document["windows"]:
        stages = ", ".join(f"{name} {figures['p50']:.2f} / {figures['p99']:.2f}"
                           for name, figures in window["stages_ms"].items())
        lines.append(f"{window['composition']}: {stages} (ms, p50 / p99)")
        if "processes" in window:
            held = ", ".join(f"{name} {row['pss_kb'] / 1024:.0f} MB {100 * row['cpu']:.0f} %"
                             for name, row in window["processes"].items())
            lines.append(f"  memory (shared pages counted once), CPU of a core: {held}; rings "
                         f"{window['rings_kb'] / 1024:.1f} MB")
        for name, row in window.get("soak", {}).items():
            first, last, most = row["pss_kb"]
            lines.append(
                f"  {name}: {first / 1024:.1f} -> {last / 1024:.1f} MB (most {most / 1024:.1f}), "
                f"files {row['files'][0]} -> {row['files'][1]}, threads "
                f"{row['threads'][0]} -> {row['threads'][1]}")
        lines += [f"  FAULT: {fault}" for fault in window["faults"]]
        left = ", ".join(window["left_in_shared_memory"]) or "none"
        lines.append(f"  shared memory left behind: {left}")
    return "\n".join([*lines, "", one_line(document["provenance"])])
