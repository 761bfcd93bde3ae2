# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni train-tabletop`: make the table-top policy from nothing, on this machine's CPU.

Makes frames in the simulated world, trains, and writes a checkpoint in LeRobot's layout with the
record of its training. Interrupted, the same command goes on from what was kept last.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from omni_ros.cli import UsageError
from omni_ros.cli.progress import Bar
from omni_ros.requirements import require

PURPOSE = "to train the table-top policy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni train-tabletop`."""
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="FOLDER",
        help="where checkpoint/, the record and work/ (frames, state to go on from) go")  # fmt: skip
    add("--minutes", type=float, default=70.0,
        help="of training, frames not counted; the schedule follows it (default 70)")  # fmt: skip
    add("--steps", type=int, default=0,
        help="train for so many steps instead, however long they take")  # fmt: skip
    add("--frames", type=int, default=80_000, help="of the expert (default 80000, 4.4 GB)")
    add("--seed", type=int, default=1, help="of frames, weights and batches (default 1)")
    add("--threads", type=int, default=1,
        help="that compute; more than there are idle cores slow it down (default 1)")  # fmt: skip
    add("--processes", type=int, default=2, help="that make frames (default 2)")
    add("--evaluate-minutes", type=float, default=5.0,
        help="between evaluations in the closed loop (default 5)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Train; progress on standard error, where the checkpoint is on standard output."""
    for name in ("minutes", "frames", "threads", "processes"):
        if getattr(arguments, name) <= 0:
            raise UsageError(f"--{name} {getattr(arguments, name)}: expected more than 0")
    for name in ("seed", "steps"):
        if getattr(arguments, name) < 0:
            raise UsageError(f"--{name} {getattr(arguments, name)}: expected 0 or more")
    for module in ("torch", "safetensors", "tokenizers", "mujoco"):
        require(module, PURPOSE)
    from omni_ros.models.tabletop.record import write_record
    from omni_ros.models.tabletop.train import Options, Training

    options = Options(
        out=arguments.out, minutes=arguments.minutes, steps=arguments.steps,
        frames=arguments.frames, seed=arguments.seed, threads=arguments.threads,
        processes=arguments.processes, evaluate_minutes=arguments.evaluate_minutes,
        own=max(500, min(16_000, arguments.frames // 5)),
    )  # fmt: skip
    bar = Bar()
    training = Training(options, bar.line)
    training.prepare(lambda count: bar.show(
        count / options.frames, f"frames {count} of {options.frames}"
    ))  # fmt: skip

    def shown(progress, losses) -> None:
        values = " ".join(f"{name} {value:.3f}" for name, value in losses.items())
        bar.show(training.share(), f"step {progress.step} {values}")

    training.run(shown)
    write_record(options.out, training)
    bar.end()
    print(options.out / "checkpoint")
    return 0
