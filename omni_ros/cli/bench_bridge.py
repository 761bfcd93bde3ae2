# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench bridge`: is a tick any later with a bridge beside it, whatever becomes of its link?

The graph runs as for `omni bench player`. A bridge comes and goes beside it; a remote of its own
process replies, takes long, goes silent in one way or the other, or is not there. Each round has a
window without a bridge and one for each of those; a ratio is that of two windows of one round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.bench_player import START_PATIENCE_S, measure
from omni_ros.cli.bridge_remote import CONDITIONS
from omni_ros.cli.children import child_environment
from omni_ros.cli.launched import LAUNCH, launched, own_domain, refuse_second_player, say
from omni_ros.cli.report import format_table, terminal_width, write
from omni_ros.requirements import require
from omni_ros.robot.files import config_folder, robot_file
from omni_ros.telemetry.provenance import one_line, provenance

ALONE = "no bridge"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni bench bridge`."""
    add = parser.add_argument
    add("--seconds", type=float, default=10.0, help="length of each window (default 10)")
    add("--rounds", type=int, default=3, help="windows of each kind (default 3)")
    add("--robot", default="", help="robot file or name (default: the simulated one)")
    add("--domain", type=int, help="ROS_DOMAIN_ID to use (default: one of its own)")
    add("--json", metavar="FILE", type=Path, help="write all figures to FILE as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the bench, print a table and write the JSON file."""
    if not 1.0 <= arguments.seconds <= 3600.0:
        raise UsageError(f"--seconds {arguments.seconds:g}: expected 1 to 3600")
    if not 1 <= arguments.rounds <= 100:
        raise UsageError(f"--rounds {arguments.rounds}: expected 1 to 100")
    if arguments.json is not None and not arguments.json.absolute().parent.is_dir():
        raise UsageError(f"--json {arguments.json}: its folder is not there; make it first")
    domain = own_domain(arguments.domain, "to run the bridge")
    require("websockets", "to run the bridge")
    from omni_ros.cli.bridge_probe import BridgeProbe
    from omni_ros.cli.player_probe import find_player
    from omni_ros.robot import load_robot

    robot = robot_file(arguments.robot).absolute()
    rate = load_robot(robot).player.rate_hz
    facts, windows = provenance(), []
    with tempfile.TemporaryDirectory(prefix="omni_bench_") as folder:
        refuse_second_player(find_player(), str(domain))
        mapping = _mapping(Path(folder))
        with launched([*LAUNCH, f"robot:={robot}"], Path(folder) / "launch.log") as (
                process, alive), _remote(robot) as (url, become), BridgeProbe(alive) as probe:
            say("waiting for the player to play ...")
            probe.wait_until_playing(START_PATIENCE_S)
            for number in range(1, arguments.rounds + 1):
                for name in (ALONE, *CONDITIONS):
                    say(f"round {number} of {arguments.rounds}, {arguments.seconds:g} s: {name} ...")
                    if name == ALONE:
                        row = measure(probe, process.pid, name, 0, rate, arguments.seconds)
                    else:
                        row = _with_bridge(probe, process.pid, name, rate, arguments.seconds, become,
                                           log=Path(folder) / "bridge.log", robot=robot,
                                           openpi=url, mapping=mapping)
                    windows.append({**row, "round": number})
    document = {
        "bench": "bridge",
        "what": "tick lateness of action_player behind the absolute deadline, seconds",
        "rate_hz": rate, "window_s": arguments.seconds, "rounds": arguments.rounds,
        "baseline": "the same graph without a bridge, in the same round",
        "conditions": dict(CONDITIONS), "windows": windows, "provenance": facts,
    }
    write(render(document, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        say(f"written to {arguments.json}")
    return 0


def _with_bridge(probe: Any, pid: int, name: str, rate: float, seconds: float, become: Any, *,
                 log: Path, **parameters: Any) -> dict[str, Any]:
    """Measure one window beside a bridge whose link was up, and then became what the name says."""
    from omni_ros.msg import BridgeStatus

    become("up")
    with probe.running_bridge(log, mode="replan", local_source="scripted", instruction="wave",
                              **parameters):
        probe.wait_for_link((BridgeStatus.LINK_ACTIVE,), START_PATIENCE_S)
        become(name)
        if name == "silent":  # for who connects anew, too
            become("down")
            probe.wait_for_link((BridgeStatus.LINK_DEGRADED,), 30.0)
            become(name)
        if name != "up":
            probe.wait_for_link((BridgeStatus.LINK_DEGRADED,), 30.0)
        row = measure(probe, pid, name, 0, rate, seconds)
        status = probe.bridge
    become("up")
    return {**row, "link": int(status.link), "reason": status.reason, "text": status.text,
            "offered": int(status.chunks_offered)}


def _mapping(folder: Path) -> Path:
    """Write the mapping that comes along, for a remote that may always take over."""
    import yaml

    content = yaml.safe_load((config_folder() / "openpi" / "omni_serve.yaml").read_text())
    content["remote"].update(backoff_s=0.1, backoff_max_s=0.5)
    content["replan"].update(use="always", every_s=0.2)
    path = folder / "mapping.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@contextmanager
def _remote(robot: Path) -> Iterator[tuple[str, Any]]:
    """Run the remote; yields its URL and what tells it what to be like."""
    process = subprocess.Popen(
        [sys.executable, "-m", "omni_ros.cli.bridge_remote", str(robot)], text=True, cwd="/",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment())
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"the remote ended with status {process.wait(10)}")

        def become(word: str) -> None:
            process.stdin.write(word + "\n")
            process.stdin.flush()

        yield url, become
    finally:
        process.kill()
        process.wait()


def ratios(document: dict[str, Any], name: str) -> list[float]:
    """Return, round by round, p99 of a condition over p99 without a bridge."""
    p99 = {(row["round"], row["condition"]): row["p99"] for row in document["windows"]}
    return [p99[number, name] / p99[number, ALONE]
            for number in range(1, document["rounds"] + 1) if p99[number, ALONE] > 0]


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the report as text: a table, what the conditions are, the provenance."""
    table = []
    for name in (ALONE, *document["conditions"]):
        rows = [row for row in document["windows"] if row["condition"] == name]
        found = ratios(document, name)
        spread = "" if name == ALONE else "?" if not found else (
            f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})")
        table.append([
            name, *(f"{1e3 * statistics.median(row[key] for row in rows):.2f}"
                    for key in ("p50", "p99")), f"{1e3 * max(row['max'] for row in rows):.1f}",
            str(sum(row["missed"] for row in rows)), str(sum(row["stops"] for row in rows)), spread,
            ", ".join(sorted({row.get("reason", "") for row in rows}))])
    title = (f"Tick lateness of the action player at {document['rate_hz']:g} Hz beside a bridge: "
             f"{document['rounds']} windows of {document['window_s']:g} s each")
    loads = [row["load_average"] for row in document["windows"]]
    lines = [
        f"p50, p99: median of the windows; max, missed ticks, stops of the arm: of all. ratio: p99 / "
        f"p99 of {document['baseline']}, median (and range).",
        *(f"{name}: {text}." for name, text in document["conditions"].items()),
        f"load average {min(loads):.1f} to {max(loads):.1f}.", "", one_line(document["provenance"])]
    prose = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
             for line in lines]
    header = ("", "p50 ms", "p99 ms", "max ms", "missed", "stops", "ratio", "link")
    return "\n".join([title, "", format_table(header, table), "", *prose])
