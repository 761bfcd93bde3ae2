# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni demo --policy scripted`: the arm traces a circle, without any network.

The world, the scripted source and the player are launched as anyone would launch them, and the
summary counts ticks, chunks and stops: what the graph does is to be seen without a policy, too.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from omni_ros.cli.launched import LAUNCH, launched, say
from omni_ros.cli.report import write
from omni_ros.requirements import require

START_PATIENCE_S = 120.0


def run(arguments: argparse.Namespace) -> int:
    """Run it; 1 if the player missed ticks by the score or stopped on its own."""
    from omni_ros.cli.demo_observer import DemoObserver

    with tempfile.TemporaryDirectory(prefix="omni_demo_") as folder:
        log = Path(folder) / "launch.log"
        with launched([*LAUNCH, *arguments.launch_arguments], log) as (_, check_alive):
            with DemoObserver(check_alive) as observer:
                say("starting the world, the player and the scripted source ...")
                observer.wait_until_playing(START_PATIENCE_S)
                say(f"the arm is moving; {arguments.seconds:g} s ...")
                observer.watch(arguments.seconds)
                facts = observer.facts()
        trouble = unclean(log)
    picture, complaint = draw(facts, arguments.report)
    trouble += [complaint] if complaint else []
    write(summary(facts, picture, trouble))
    return 0 if facts["missed"] * 100 <= facts["ticks"] and not facts["stops"] and not trouble else 1


def unclean(log: Path) -> list[str]:
    """Lines of the launch's output that tell of a process that did not end well."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if "process has died" in line or "Traceback" in line]


def draw(facts: dict[str, Any], folder: Path) -> tuple[Path | None, str]:
    """Write the picture of the arm and the path of its tip.

    :return: its path, None where it cannot be drawn, and what went wrong, "" if nothing did.
    """
    if not len(facts["joint_positions"]):
        return None, ""
    try:
        require("mujoco", "to draw the arm")
        cv2 = require("cv2", "to write the picture")
    except ImportError as error:
        say(f"no picture: {error}")
        return None, ""
    from omni_ros.world.portrait import trail_picture

    path = folder / "trace.png"
    image = trail_picture(facts["joint_positions"], facts["blocks"])
    # OpenCV tells a full disk or a folder that has gone by its return value alone.
    if not cv2.imwrite(str(path), image[..., ::-1]):
        return None, f"the picture {path} could not be written"
    return path, ""


def summary(facts: dict[str, Any], picture: Path | None, trouble: list[str]) -> str:
    """Return the summary in plain words.

    :param facts: what `DemoObserver.facts` returns; seconds and counts.
    """
    def ms(seconds: float) -> str:
        return f"{seconds * 1e3:.1f} ms"

    refused = ", ".join(f"{count} {name}" for name, count in facts["refused"].items()) or "none"
    limited = ", ".join(f"{count} by {name}" for name, count in facts["limited"].items()) or "never"
    rows = [
        ("ticks", f"{facts['ticks']} at {facts['rate_hz']:g} Hz, {facts['missed']} missed"),
        ("tick lateness", f"p50 {ms(facts['p50'])}, p99 {ms(facts['p99'])}, "
                          f"max {ms(facts['max'])}"),
        ("chunks", f"{facts['received']} received, {facts['played']} played, refused: {refused}"),
        ("age at command", f"observation {ms(facts['age_p50'])} (p50), "
                           f"{ms(facts['age_max'])} (max)"),
        ("tick limited", limited),
        ("stops", str(facts["stops"])),
        ("tip travelled", f"{facts['tip_path_m']:.2f} m"),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"The arm followed its chunks for {facts['seconds']:.0f} s."]
    lines += [f"  {name:{width}}  {text}" for name, text in rows]
    if picture:
        lines.append(f"  {'picture':{width}}  {picture}")
    lines += [f"not well: {line}" for line in trouble]
    return "\n".join(lines)
