# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench talking`: speech through the real nodes and a real sound server.

Three questions. Does the player's tick notice that the robot talks while a policy acts? The same graph
is watched silent and talking, in turns. How soon is it silent after a stop, and how soon heard after a
goal? Timed where the sound arrives. Does anything pile up, goal after goal, a third of them cancelled?
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.cli import UsageError
from omni_ros.cli.launched import launched, own_domain, say
from omni_ros.cli.null_sink import Microphone, SoundServer, missing
from omni_ros.cli.processes import cpu_seconds, descendants, find_descendant
from omni_ros.cli.report import format_table, terminal_width, write
from omni_ros.telemetry.provenance import one_line, provenance

VLA = ("ros2", "launch", "omni_ros", "vla.launch.py", "policy:=bundle", "speech:=true",
       "instruction:=touch the red block")
SPEECH = ("ros2", "launch", "omni_ros", "speech.launch.py")
START_S = 180.0
#: The sound server and the graph settle for this long.
SETTLE_S = 3.0
SENTENCE = "I will pick up the red block and then I will put it on the pad."
TEXTS = [SENTENCE, "There is a yellow block on the left side, and a green one in the middle.",
         "Please tell me when you are ready, because I would like to go on with the next one."]
PARTS = ("beside", "stops", "goals")
#: Goals at the beginning and at the end whose first audio is compared.
FEW = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni bench talking`."""
    add = parser.add_argument
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure (all)")
    add("--seconds", type=float, default=30.0, help="length of a window beside a policy (30)")
    add("--rounds", type=int, default=3, help="silent and talking windows, in turns (3)")
    add("--stops", type=int, default=20, help="utterances that are stopped (20)")
    add("--goals", type=int, default=100, help="goals, a third of them cancelled (100)")
    add("--domain", type=int, help="ROS_DOMAIN_ID to use (default: one of its own)")
    add("--json", metavar="FILE", type=Path, help="write all figures to FILE as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the bench, print the figures and write the JSON file."""
    for name, low, high in (("seconds", 2, 600), ("rounds", 1, 20), ("stops", 1, 1000),
                            ("goals", 3, 10000)):
        if not low <= getattr(arguments, name) <= high:
            raise UsageError(f"--{name} {getattr(arguments, name):g}: expected {low} to {high}")
    if missing():
        raise UsageError(missing())
    own_domain(arguments.domain, "to run the speech node")
    document: dict[str, Any] = {"bench": "talking", "provenance": provenance()}
    with tempfile.TemporaryDirectory(prefix="omni_bench_") as name:
        folder = Path(name)
        server = SoundServer(folder)
        server.start()
        os.environ.update(server.variables)
        try:
            measure(arguments, document, folder, server)
        finally:
            server.stop()
    write(render(document, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        say(f"written to {arguments.json}")
    return 0


def measure(arguments: argparse.Namespace, document: dict, folder: Path, server: SoundServer) -> None:
    """Fill the document with the parts that were asked for."""
    from omni_ros.cli.talking_graph import TalkingGraph

    if "beside" in arguments.parts:
        with launched([*VLA], folder / "vla.log") as (process, check_alive):
            with TalkingGraph(check_alive) as graph:
                say("starting the policy, the player and the voice ...")
                graph.wait_until_playing(START_S)
                graph.wait_until_it_speaks(START_S)
                document["beside"] = beside(graph, process.pid, arguments)
    if {"stops", "goals"} & set(arguments.parts):
        with launched([*SPEECH], folder / "speech.log") as (process, check_alive):
            with TalkingGraph(check_alive) as graph:
                say("starting the voice ...")
                graph.wait_until_it_speaks(START_S)
                graph.spin(SETTLE_S)
                pid = find_descendant(process.pid, "tts")
                if "stops" in arguments.parts:
                    document["stops"] = stops(graph, server, arguments.stops)
                if "goals" in arguments.parts:
                    document["goals"] = goals(graph, pid, arguments.goals)


def beside(graph: Any, launch_pid: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Watch the player's lateness, silent and talking in turns."""
    graph.spin(SETTLE_S)
    graph.talk_for(TEXTS[:1], 0.1)  # once, so that both sides are warm
    pids = [find_descendant(launch_pid, "tts")]
    pids += descendants(pids[0]) if pids[0] else []
    rows = []
    for number in range(2 * arguments.rounds):
        talking = number % 2 == 1
        say(f"measuring {arguments.seconds:g} s: {'talking' if talking else 'silent'} ...")
        before = graph.reset_lateness()
        cpu = sum(cpu_seconds(pid) or 0.0 for pid in pids if pid)
        said = graph.talk_for(TEXTS, arguments.seconds) if talking else []
        if not talking:
            graph.spin(arguments.seconds)
        after = graph.fresh_status()
        cpu = sum(cpu_seconds(pid) or 0.0 for pid in pids if pid) - cpu
        head = graph.policy.get("action_head")
        rows.append({
            "talking": talking, "ticks": after.ticks - before.ticks,
            "missed": after.ticks_missed - before.ticks_missed, "p50": after.lateness_p50,
            "p99": after.lateness_p99, "max": after.lateness_max,
            "stops": after.stops - before.stops, "utterances": len(said),
            "latency_p50": getattr(head, "latency_p50", float("nan")),
            "latency_p99": getattr(head, "latency_p99", float("nan")),
            "cpu_percent": 100.0 * cpu / arguments.seconds,
            "load_average": os.getloadavg()[0]})
    status = graph.speech_status()
    return {"rows": rows, "speech": speech_figures(status), "window_s": arguments.seconds}


def speech_figures(status: Any) -> dict[str, Any]:
    """Return what the speech node says of itself, as plain values."""
    return {name: getattr(status, name) for name in (
        "spoken", "underruns", "device_underruns", "longest_gap", "first_audio_p50",
        "first_audio_p99", "real_time_factor", "slack_min", "device", "device_latency")} | {
            "placement": list(status.placement)}


def stops(graph: Any, server: SoundServer, count: int) -> dict[str, Any]:
    """Stop utterances at random moments; when did the sound begin, and when did it end?"""
    say(f"stopping {count} utterances ...")
    microphone, chance = Microphone(server), random.Random(1)
    began, silent, told = [], [], []
    try:
        for _ in range(count):
            graph.spin(0.3)
            _, result, sent = graph.send(SENTENCE)
            graph.spin(chance.uniform(0.8, 2.0))
            called = graph.stop()
            said = graph.end(result, sent)
            graph.spin(0.5)
            ends = microphone.ends(sent)
            if ends is None or not said.first_audio_s:
                continue  # stopped before it was heard
            began.append(ends[0] - sent)
            silent.append(ends[1] - called)
            told.append(said.first_audio_s)
    finally:
        microphone.close()
    return {"count": len(began), "heard_after_s": began, "silent_after_s": silent,
            "first_audio_s": told}


def goals(graph: Any, pid: int, count: int) -> dict[str, Any]:
    """Send goals one after the other and cancel a third of them at some moment."""
    say(f"{count} goals, a third of them cancelled ...")
    chance, ends, first = random.Random(2), {}, []
    before = None
    for number in range(count):
        handle, result, sent = graph.send(f"This is number {number}.")
        if number % 3 == 0:
            graph.spin(chance.uniform(0.0, 0.8))
            graph.cancel(handle)
        said = graph.end(result, sent)
        ends[said.state] = ends.get(said.state, 0) + 1
        if number % 3:
            first.append(said.first_audio_s)
        if number == min(20, count // 2):
            before = held(pid)
    graph.spin(1.0)
    return {"count": count, "ends": ends, "before": before, "after": held(pid),
            "first_audio_s": first}


def held(pid: int) -> dict[str, int]:
    """Return files, threads and resident kilobytes of a process."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return {"files": len(os.listdir(f"/proc/{pid}/fd")), "threads": int(fields["Threads"]),
            "resident_kb": int(fields["VmRSS"].split()[0])}


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the report as text."""
    lines: list[str] = []
    if "beside" in document:
        lines += _render_beside(document["beside"]) + [""]
    if "stops" in document:
        part = document["stops"]
        lines += [f"{part['count']} utterances stopped at random moments, timed at the sound server:",
                  f"  silent after the stop was asked for: {_spread(part['silent_after_s'])}",
                  f"  heard after the goal was sent:       {_spread(part['heard_after_s'])}",
                  f"  first sample out, as the node says:  {_spread(part['first_audio_s'])}", ""]
    if "goals" in document:
        part = document["goals"]
        change = part["after"]["resident_kb"] - part["before"]["resident_kb"]
        lines += [
            f"{part['count']} goals, a third cancelled: " + ", ".join(
                f"{number} {state}" for state, number in sorted(part["ends"].items())),
            f"  files {part['before']['files']} -> {part['after']['files']}, threads "
            f"{part['before']['threads']} -> {part['after']['threads']}, resident {change:+d} kB of "
            f"{part['after']['resident_kb']} kB",
            *_first_and_last(part["first_audio_s"]), ""]
    return "\n".join([*lines, one_line(document["provenance"])])


def _render_beside(part: dict[str, Any]) -> list[str]:
    header = ("window", "ticks", "p50 ms", "p99 ms", "max ms", "missed", "chunk p50", "chunk p99",
              "voice CPU", "load")
    rows = [["talking" if row["talking"] else "silent", str(row["ticks"]),
             *(f"{1e3 * row[key]:.2f}" for key in ("p50", "p99", "max")), str(row["missed"]),
             *(f"{1e3 * row[key]:.0f}" for key in ("latency_p50", "latency_p99")),
             f"{row['cpu_percent']:.0f} %", f"{row['load_average']:.1f}"] for row in part["rows"]]
    silent, talking = ([1e3 * row["p99"] for row in part["rows"] if row["talking"] is kind]
                       for kind in (False, True))
    speech = part["speech"]
    return [
        f"Tick lateness of the player beside the default policy, {part['window_s']:g} s a window", "",
        format_table(header, rows), "",
        f"p99: silent {np.median(silent):.2f} ms, talking {np.median(talking):.2f} ms (medians), "
        f"moved by {np.median(talking) - np.median(silent):+.2f} ms",
        f"speech: {speech['spoken']} spoken, {speech['underruns']} underruns, "
        f"{speech['device_underruns']} of the device, first audio "
        f"{1e3 * speech['first_audio_p50']:.0f} ms (p99 {1e3 * speech['first_audio_p99']:.0f}), "
        f"real-time factor {speech['real_time_factor']:.2f}, least slack "
        f"{1e3 * speech['slack_min']:.0f} ms",
        *(f"placement: {text}" for text in speech["placement"])]


def _first_and_last(values: list[float]) -> list[str]:
    """Set the first goals that were spoken to their end beside the last ones."""
    few = min(FEW, len(values) // 2)
    if not few:
        return ["  first audio: of too few goals to compare; give more --goals"]
    first, last = 1e3 * np.array(values[:few]), 1e3 * np.array(values[-few:])
    sides = [f"{name} {few} goals {np.median(side):.0f} ms ({side.min():.0f}-{side.max():.0f})"
             for name, side in (("first", first), ("last", last))]
    return ["  first audio, median (range): " + ", ".join(sides)
            + f"; last / first {np.median(last) / np.median(first):.2f}"]


def _spread(values: list[float]) -> str:
    if not values:
        return "nothing was heard"
    low, high = np.percentile(values, (50, 95))
    return f"median {1e3 * low:.0f} ms, p95 {1e3 * high:.0f} ms, max {1e3 * max(values):.0f} ms"
