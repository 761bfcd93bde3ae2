# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a training run leaves for people: its record and its curve."""

from __future__ import annotations

import csv
import os
import platform
from pathlib import Path

import torch

from omni_ros.world.tasks import SKILLS

from .checkpoint import write_json
from .train import Training

#: The skills' lines in the picture.
_COLOURS = {"touch": "tab:blue", "pick_up": "tab:green", "place": "tab:orange"}


def processor() -> str:
    """Return the name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def facts(training: Training) -> dict:
    """Return what is worth knowing about a run, as JSON takes it."""
    options, state = training.options, training.progress
    return {
        "hardware": {"processor": processor(), "cores": os.cpu_count(),
                     "threads": options.threads, "torch": torch.__version__},
        "minutes": round(state.seconds / 60, 2), "steps": state.step, "seed": options.seed,
        "frames": {"expert": options.frames, "policy": state.own_filled},
        "batch": {"frames": options.batch, "instructions": options.instructions,
                  "draws": options.draws, "late_share": options.late_share,
                  "late_frames": options.late_batch,
                  "late_instructions": options.late_instructions},
        "rate": options.rate,
        "parameters": sum(p.numel() for p in training.model.parameters())
        + training.tokens.numel(),
        # JSON knows no NaN: seconds of no success are null.
        "curve": [{k: None if v != v else v for k, v in point.items()} for point in state.curve],
    }


def write_record(folder: Path, training: Training) -> None:
    """Write training_record.json, training_record.md, curve.csv and, where it can be, curve.png."""
    found = facts(training)
    write_json(folder / "training_record.json", found)
    curve = found["curve"]
    if curve:
        names = list(dict.fromkeys(name for point in curve for name in point))
        with (folder / "curve.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows({k: v if v is None else round(v, 5) for k, v in point.items()} for point in curve)
        draw_curve(folder / "curve.png", curve)
    (folder / "training_record.md").write_text(text(found), encoding="utf-8")


def text(found: dict) -> str:
    """Return the record for people."""
    hardware, frames, batch = found["hardware"], found["frames"], found["batch"]
    lines = [
        "# Training record", "",
        f"- Hardware: {hardware['processor']}, {hardware['cores']} cores, of which "
        f"{hardware['threads']} computed; PyTorch {hardware['torch']}",
        f"- {found['minutes']:.1f} minutes, {found['steps']} steps, seed {found['seed']}",
        f"- {found['parameters']:,} parameters, all trained from random values",
        f"- Frames: {frames['expert']:,} of the expert, {frames['policy']:,} of the policy's own "
        "ways, labelled by the expert",
        f"- A step: {batch['frames']} frames x {batch['instructions']} instructions x "
        f"{batch['draws']} draws of noise, from {batch['late_share']:.0%} on "
        f"{batch['late_frames']} x {batch['late_instructions']} x {batch['draws']}; highest rate "
        f"{found['rate']:g}", "",
        "Closed loop during training (averaged weights, seeds never trained on, 8 of 16 rows "
        "played, chunks one row late):", "",
        "| min | step | " + " | ".join(f"{s} | wrong" for s in SKILLS) + " |",
        "|---" * (2 + 2 * len(SKILLS)) + "|",
    ]
    for point in found["curve"]:
        rates = " | ".join(
            f"{point[f'{skill}_success']:.0%} | {point[f'{skill}_wrong']:.0%}" for skill in SKILLS
        )
        lines.append(f"| {point['minutes']:.1f} | {point['step']:.0f} | {rates} |")
    return "\n".join(lines) + "\n"


def draw_curve(path: Path, curve: list[dict]) -> None:
    """Draw success over minutes; without matplotlib there is no picture."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (rates, losses) = pyplot.subplots(1, 2, figsize=(10, 4))
    minutes = [point["minutes"] for point in curve]
    for skill in SKILLS:
        colour = _COLOURS[skill]
        rates.plot(minutes, [100 * p[f"{skill}_success"] for p in curve], "o-", color=colour,
                   label=skill)
        rates.plot(minutes, [100 * p[f"{skill}_wrong"] for p in curve], "x:", color=colour)
    rates.set(xlabel="minutes", ylabel="episodes, % (dotted: wrong block)", ylim=(-3, 103))
    rates.legend(loc="center right")
    for name in ("flow", "see", "mark", "know"):
        known = [(p["minutes"], p[name]) for p in curve if name in p]
        losses.plot(*zip(*known, strict=True), "o-", label=name)
    losses.set(xlabel="minutes", ylabel="loss", yscale="log")
    losses.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
