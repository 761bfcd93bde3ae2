# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni bench speech --voice BUNDLE` for a Qwen3-TTS bundle.

Every side is a process of its own and they take turns, a round each, first on the machine as it is
and then beside busy neighbours: the voice with its talker in ExecuTorch, the same in llama.cpp
where the bundle has a GGUF file, llama.cpp's own code generation where an mmproj file is given, and
eager PyTorch where the checkpoint is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from omni_ros.cli.baseline import percentile
from omni_ros.cli.bench_policy import Side
from omni_ros.cli.children import child_environment
from omni_ros.cli.launched import say
from omni_ros.telemetry.provenance import provenance

_BUSY = "while True: pass"
SHARES = (("p10", 0.1), ("p50", 0.5), ("p90", 0.9))


class SpeechSide(Side):
    """A worker process; see omni_ros.cli.bench_speech_qwen_worker."""

    module = "omni_ros.cli.bench_speech_qwen_worker"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what only this family of voices has."""
    add = parser.add_argument
    add("--frames", type=int, default=25, metavar="N", help="frames of a round (default 25)")
    add("--checkpoint", type=Path, metavar="DIR", help="adds eager PyTorch as a side")
    add("--mmproj", type=Path, metavar="FILE",
        help="adds llama.cpp's own code generation as a side; its converter makes this file")
    add("--gguf", default="", metavar="NAME",
        help="which GGUF file of the bundle llama.cpp runs, for example q8_0 (default: the first)")
    add("--busy", type=int, default=2, metavar="N",
        help="busy neighbours of the second half of the rounds (default 2; 0: no second half)")


def measure(arguments: argparse.Namespace, bundle: Path, rounds: int, threads: int) -> dict:
    """Run all sides in turn; return the document."""
    from omni_ros.bundles import read_manifest

    manifest = read_manifest(bundle)
    facts = provenance()
    sides: dict[str, SpeechSide] = {}
    halves: dict[str, dict[str, list[dict[str, Any]]]] = {}
    try:
        for name, options in sides_of(arguments, manifest, bundle, threads).items():
            sides[name] = SpeechSide({"side": name, "threads": threads,
                                      "frames": arguments.frames, **options})
            say(f"{name}: ready, {sides[name].resident / 1e6:.0f} MB resident")
            sides[name].chunk()
        for half, neighbours in [("quiet", 0)] + ([("busy", arguments.busy)] * bool(arguments.busy)):
            say(f"{half}: {rounds} rounds")
            halves[half] = one_half(sides, rounds, neighbours)
    finally:
        for side in sides.values():
            side.close()
    return {
        "bench": "speech", "family": manifest.family, "bundle": manifest.name,
        "recipes": {name: entry.recipe for name, entry in manifest.programs.items()},
        "threads": threads, "rounds": rounds, "frames": arguments.frames, "busy": arguments.busy,
        "frame_s": manifest.sound.frame_samples / manifest.sound.sample_rate,
        "halves": {half: {name: summary(runs) for name, runs in found.items()}
                   for half, found in halves.items()},
        "ratios": {half: ratios(found) for half, found in halves.items()},
        "sides": {name: side.facts for name, side in sides.items()},
        "provenance": facts,
    }  # fmt: skip


def sides_of(
    arguments: argparse.Namespace, manifest: Any, bundle: Path, threads: int
) -> dict[str, dict[str, Any]]:
    """Return each side's name and what its worker is told."""
    whole = {"kind": "bundle", "bundle": str(bundle.absolute())}
    made = {"executorch": {**whole, "options": {"talker": "executorch"}}}
    files = dict(manifest.speech.gguf)
    name = arguments.gguf or next(iter(files), "")
    if name:
        made[f"llama.cpp {name}"] = {**whole, "options": {"talker": "llama.cpp", "gguf": name}}
    if arguments.mmproj is not None and name:
        made["mtmd"] = {
            "kind": "mtmd", "mmproj": str(arguments.mmproj.absolute()),
            "gguf": str((bundle / files[name]).absolute()),
            "width": manifest.speech.talker.width, "codes": manifest.speech.talker.codes,
            "codebook": manifest.speech.vocoder.codes,
        }  # fmt: skip
    if arguments.checkpoint is not None:
        made["eager"] = {"kind": "eager", "checkpoint": str(arguments.checkpoint.absolute()),
                         "chunk": max(manifest.speech.vocoder.chunks)}  # fmt: skip
    return made


def one_half(
    sides: dict[str, SpeechSide], rounds: int, neighbours: int
) -> dict[str, list[dict[str, Any]]]:
    """Run the rounds beside so many busy processes."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY], env=child_environment(), cwd="/")
            for _ in range(neighbours)]  # fmt: skip
    try:
        for index in range(rounds):
            # Who comes first alternates: one may leave the caches or the clock to the other.
            for name in list(sides)[:: 1 if index % 2 == 0 else -1]:
                found[name].append(sides[name].chunk())
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return found


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return percentiles over a side's rounds, in seconds (a frame, but for `first`)."""
    def spread(values: list[float | None]) -> dict[str, float] | None:
        known = [value for value in values if value is not None]
        return {name: percentile(known, share) for name, share in SHARES} if known else None

    return {
        "frame": spread([run["seconds"] for run in runs]),
        "rtf": spread([run["rtf"] for run in runs]),
        "first": spread([run["first"] for run in runs]),
        "prompt": spread([run["prompt"] for run in runs]),
        "silent": spread([run.get("silent") for run in runs]),
        "stages": {name: spread([run["stages"].get(name, 0.0) for run in runs])
                   for name in runs[0]["stages"]},
        "resident": max(run["resident"] for run in runs),
    }


def ratios(found: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return, for each other side and each stage both have, how many times longer it takes than
    the first side, round by round."""
    names = list(found)
    own = found[names[0]]
    made: dict[str, dict[str, dict[str, float]]] = {}
    for name in names[1:]:
        stages = [stage for stage in own[0]["stages"] if stage in found[name][0]["stages"]]
        rows = {stage: [other["stages"][stage] / run["stages"][stage]
                        for other, run in zip(found[name], own, strict=True)]
                for stage in stages}  # fmt: skip
        if found[name][0]["rtf"] is not None:
            rows["frame"] = [other["seconds"] / run["seconds"]
                             for other, run in zip(found[name], own, strict=True)]  # fmt: skip
        made[name] = {stage: {key: percentile(values, share) for key, share in SHARES}
                      for stage, values in rows.items()}  # fmt: skip
    return made


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the report as text."""
    from omni_ros.cli.policy_report import _fill
    from omni_ros.cli.report import format_table
    from omni_ros.telemetry.provenance import one_line

    recipes = ", ".join(sorted(set(document["recipes"].values())))
    title = (
        f"{document['bundle']} ({recipes}): {document['rounds']} rounds of {document['frames']} "
        f"frames of {1e3 * document['frame_s']:.0f} ms, {document['threads']} threads"
    )
    parts = [title, ""]
    for half, found in document["halves"].items():
        neighbours = f" ({document['busy']} busy neighbours)" if half == "busy" else ""
        header = (f"{half}{neighbours}", "talker", "predictor", "vocoder", "frame ms", "RTF",
                  "first ms", "silent", "MB")  # fmt: skip
        rows = [_row(name, side) for name, side in found.items()]
        parts += [format_table(header, rows), ""]
    lines = []
    for half, others in document["ratios"].items():
        for name, stages in others.items():
            told = ", ".join(f"{stage} {spread['p50']:.2f} ({spread['p10']:.2f} to "
                             f"{spread['p90']:.2f})" for stage, spread in stages.items())
            lines.append(f"{half}, {name} / {next(iter(document['sides']))}, round by round: {told}.")
    lines += [
        "Medians over rounds, p10 to p90 behind them. Milliseconds a frame; first: from the text to "
        "the first samples, prompt included; silent: seconds that playback stood still in a round; "
        "MB: resident. mtmd: llama.cpp's talker and its own code generation, no vocoder; eager: "
        "PyTorch, float32, with caches.",
        one_line(document["provenance"]),
    ]
    return "\n".join([*parts, *_fill(lines, width)])


def _row(name: str, side: dict[str, Any]) -> list[str]:
    def cell(spread: dict[str, float] | None, scale: float, digits: int) -> str:
        if spread is None:
            return "-"
        low, middle, high = (f"{scale * spread[key]:.{digits}f}" for key in ("p10", "p50", "p90"))
        return f"{middle} ({low}-{high})"

    stages = side["stages"]
    return [
        name, *(cell(stages.get(stage), 1e3, 1) for stage in ("talker", "predictor", "vocoder")),
        cell(side["frame"], 1e3, 1), cell(side["rtf"], 1, 2), cell(side["first"], 1e3, 0),
        f"{side['silent']['p50']:.2f}" if side["silent"] else "-", f"{side['resident'] / 1e6:.0f}",
    ]  # fmt: skip
