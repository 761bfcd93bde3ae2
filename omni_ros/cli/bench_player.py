# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench player`: how late the action player's ticks are on this machine.

The whole graph runs as it would for real (world, scripted source, player: a process each, in a
DDS domain of its own), first left alone and then with busy processes beside it. In the same window
a bare Python process sleeps to absolute deadlines at the same rate: what is late there, the machine
is to blame for, and the ratio says what the player adds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.children import child_environment
from omni_ros.robot.files import robot_file, with_rate
from omni_ros.cli.launched import LAUNCH, launched, own_domain, refuse_second_player, rise, say
from omni_ros.cli.processes import busy_processes, cpu_seconds, find_descendant
from omni_ros.cli.report import format_table, terminal_width, write
from omni_ros.telemetry.provenance import one_line, provenance

EXECUTABLE = "action_player"

#: Starting the graph takes some seconds on two cores; a machine under load needs more.
START_PATIENCE_S = 120.0
SETTLE_S = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni bench player`."""
    add = parser.add_argument
    add("--seconds", type=float, default=60.0, help="length of each window (default 60)")
    add("--rate", type=float, help="ticks a second (default: the robot file's)")
    add("--busy", type=int, default=2, help="busy processes when loaded (default 2)")
    add("--robot", default="", help="robot file or name (default: the simulated one)")
    add("--domain", type=int, help="ROS_DOMAIN_ID to use (default: one of its own)")
    add("--json", metavar="FILE", type=Path, help="write all figures to FILE as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the bench, print a table and write the JSON file."""
    _check(arguments)
    domain = own_domain(arguments.domain, "to run the player")
    # Here, since `omni bench --help` needs neither numpy nor ROS.
    from omni_ros.cli.player_probe import PlayerProbe, find_player
    from omni_ros.robot import load_robot

    facts = provenance()
    conditions = []
    with tempfile.TemporaryDirectory(prefix="omni_bench_") as folder:
        if arguments.rate is None:
            robot = robot_file(arguments.robot)
        else:
            robot = with_rate(arguments.robot, arguments.rate, Path(folder))
        rate = load_robot(robot).player.rate_hz
        refuse_second_player(find_player(), str(domain))
        command = [*LAUNCH, f"robot:={robot.absolute()}"]
        with launched(command, Path(folder) / "launch.log") as (process, check_alive):
            with PlayerProbe(check_alive) as probe:
                say("waiting for the player to play ...")
                probe.wait_until_playing(START_PATIENCE_S)
                for busy in (0, arguments.busy):
                    name = f"{busy} busy processes" if busy else "idle"
                    say(f"measuring {arguments.seconds:g} s: {name} ...")
                    conditions.append(
                        measure(probe, process.pid, name, busy, rate, arguments.seconds)
                    )
    document = {
        "bench": "player",
        "what": "tick lateness behind the absolute deadline, seconds",
        "rate_hz": rate,
        "window_s": arguments.seconds,
        "baseline": "bare Python process sleeping to absolute deadlines, same rate, same window",
        "conditions": conditions,
        "provenance": facts,
    }
    write(render(document, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        say(f"written to {arguments.json}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if not 1.0 <= arguments.seconds <= 3600.0:
        raise UsageError(f"--seconds {arguments.seconds:g}: expected 1 to 3600")
    if arguments.rate is not None and not 1.0 <= arguments.rate <= 1000.0:
        raise UsageError(f"--rate {arguments.rate:g}: expected 1 to 1000 ticks a second")
    if not 1 <= arguments.busy <= 64:
        raise UsageError(f"--busy {arguments.busy}: expected 1 to 64 processes")
    if arguments.domain is not None and not 0 <= arguments.domain <= 101:
        raise UsageError(f"--domain {arguments.domain}: expected 0 to 101")
    if arguments.json is not None and not arguments.json.absolute().parent.is_dir():
        raise UsageError(f"--json {arguments.json}: its folder is not there; make it first")


def measure(
    probe: Any, launch_pid: int, name: str, busy: int, rate_hz: float, seconds: float
) -> dict[str, Any]:
    """Measure one window.

    :param probe: a PlayerProbe that sees the player play.
    :param launch_pid: the process below which the player runs.
    :return: a row of the report; lateness in seconds, `cpu_percent` of one core or None.
    """
    with busy_processes(busy):
        probe.spin(SETTLE_S)
        pid = find_descendant(launch_pid, EXECUTABLE)
        baseline = subprocess.Popen(
            [sys.executable, "-m", "omni_ros.cli.baseline", str(rate_hz), str(seconds)],
            stdout=subprocess.PIPE,
            env=child_environment(),
            cwd="/",
            preexec_fn=os.setpgrp,  # Ctrl-C is for this process, which ends it below
        )
        try:
            before = probe.reset_lateness()
            started, cpu_before = time.monotonic(), pid and cpu_seconds(pid)
            probe.spin(seconds)
            after = probe.fresh_status()
            elapsed, cpu_after = time.monotonic() - started, pid and cpu_seconds(pid)
            load = os.getloadavg()[0]
            output, _ = baseline.communicate(timeout=30.0)
        finally:
            if baseline.poll() is None:
                baseline.kill()
                baseline.wait()
    if baseline.returncode != 0:
        raise RuntimeError(f"the baseline process ended with status {baseline.returncode}")
    cpu = None
    if cpu_before is not None and cpu_after is not None:
        cpu = 100.0 * (cpu_after - cpu_before) / elapsed
    return {
        "condition": name,
        "busy_processes": busy,
        "seconds": elapsed,
        "ticks": rise(before, after, "ticks"),
        "missed": rise(before, after, "ticks_missed"),
        "p50": after.lateness_p50,
        "p99": after.lateness_p99,
        "max": after.lateness_max,
        "stops": rise(before, after, "stops"),
        "commands": rise(before, after, "commands"),
        "cpu_percent": cpu,
        "load_average": load,
        "baseline": json.loads(output),
        "realtime": list(after.realtime),
    }


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the report as text: a table, what else is worth knowing, the provenance."""
    figures = ("ticks", "p50 ms", "p99 ms", "max ms", "missed", "CPU", "base p99", "ratio")
    rows = []
    for row in document["conditions"]:
        base = row["baseline"]["p99"]
        ratio = row["p99"] / base if base > 0 else math.nan
        cpu = "?" if row["cpu_percent"] is None else f"{row['cpu_percent']:.0f} %"
        lateness = [f"{1e3 * row[key]:.2f}" for key in ("p50", "p99", "max")]
        rows.append(
            [row["condition"], str(row["ticks"]), *lateness, str(row["missed"]), cpu]
            + [f"{1e3 * base:.2f}", "?" if math.isnan(ratio) else f"{ratio:.1f}"]
        )
    title = "Tick lateness of the action player"
    title += f" at {document['rate_hz']:g} Hz, {document['window_s']:g} s a window"
    lines = [
        f"base: {document['baseline']} (ms).",
        "CPU: of the player's process, in percent of one core. ratio: p99 / base p99.",
    ]
    for row in document["conditions"]:
        if row["stops"]:
            lines.append(f"{row['condition']}: the player stopped {row['stops']} times meanwhile.")
        loads = f"{row['condition']}: load average {row['load_average']:.2f} at the end"
        base = row["baseline"]
        lines.append(f"{loads}; baseline max {1e3 * base['max']:.2f} ms, missed {base['missed']}.")
    asked = document["conditions"][-1]["realtime"] if document["conditions"] else []
    lines += [f"real time: {text}" for text in asked] or ["real time: nothing was asked for."]
    lines += ["", one_line(document["provenance"])]
    prose = [
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines
    ]
    return "\n".join([title, "", format_table(("condition", *figures), rows), "", *prose])
