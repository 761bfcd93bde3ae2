# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni export`: a checkpoint as its training left it to a bundle for a robot.

Needs PyTorch and the whole ExecuTorch wheel; what it writes runs without PyTorch.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.export_voice import add_voice_arguments, export_qwen, refuse_voice_arguments
from omni_ros.cli.report import terminal_width, write
from omni_ros.requirements import require

PURPOSE = "to export a checkpoint"
RECIPES = ("fp32", "int8", "int4")
#: How errors of the loaders, which are a library, call what are options here.
SPELLINGS = {
    "backbone=DIR": "--backbone DIR",
    "base=DIR": "--base DIR",
    "dataset=NAME": "--dataset NAME",
    'statistics="identity"': "--stats identity",
    "statistics=FILE": "--stats FILE",
    "compat is": "--lerobot-compat is",
    "cameras=": "--cameras ",
    "vision_heads=": "--vision-heads ",
    "aloha=": "--aloha ",
    "relative=": "--relative ",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni export`."""
    add = parser.add_argument
    add("checkpoint", type=Path, metavar="CHECKPOINT",
        help="folder with config.json and model.safetensors (a policy, a Qwen3-TTS), or with a "
        "Piper voice")  # fmt: skip
    add("--out", type=Path, required=True, metavar="BUNDLE", help="folder to be made")
    add("--joints", metavar="JOINTS",
        help="names and units in the data set's order: NAME:UNIT,NAME:UNIT,... or FILE.yaml "
        "(joints: [{name, unit}], state: likewise if it differs); units rad, deg, m, normalised. "
        "`raw`: none, for comparisons; no robot plays such a bundle. A voice has none")  # fmt: skip
    add("--backbone", type=Path, metavar="DIR",
        help="local copy of the backbone's config and tokenizer")  # fmt: skip
    add("--base", type=Path, metavar="DIR",
        help="for a LoRA adapter: the checkpoint it was trained on")  # fmt: skip
    add("--recipe", choices=RECIPES, default="fp32",
        help="fp32 as it is; int8: products with 8-bit weights and inputs; int4 (π0, π0.5): 4-bit "
        "weights in the backbone, int8 elsewhere (default fp32)")
    add("--lerobot-compat", default="new", metavar="RELEASE",
        help="new; transformers-4.55 for a SmolVLA trained with transformers 4.55 to 4.57; "
        "lerobot-0.4 for a π0 or π0.5 trained with LeRobot 0.4")  # fmt: skip
    add("--dataset", metavar="NAME", help="whose statistics, where a checkpoint has several")
    add("--stats", metavar="FILE",
        help="statistics instead of the checkpoint's: the data set's meta/stats.json, or "
        "`identity` if values are meant as they are")  # fmt: skip
    add("--cameras", metavar="N|NAME,...",
        help="make slots for these cameras only, or for the first N: a masked slot costs as much "
        "as any other (default: all)")  # fmt: skip
    add("--aloha", choices=("none", "openpi", "lerobot"),
        help="π0, π0.5: trained with adapt_to_pi_aloha, and whose constants of the gripper (default: "
        "as config.json says; openpi's does not)")  # fmt: skip
    add("--relative", metavar="WHICH",
        help="π0, π0.5: actions are relative to the state: all, except:WORD,... (joints with a word "
        "in their name are absolute), or none (default: as the processors say)")  # fmt: skip
    add("--vision-heads", type=int, metavar="N",
        help="π0, π0.5: heads of a vision tower of another width than the published one")
    add_voice_arguments(parser)
    add("--name", help="name of the bundle (default: that of the folder)")
    add("--threads", type=int, default=1, metavar="N",
        help="threads to compute with here; a program's workspace depends on them (default 1)")
    add("--allow-portable", action="store_true",
        help="accept operators outside the delegate: right, but slower by far")  # fmt: skip
    add("--force", action="store_true", help="replace a bundle that is there already")


def run(arguments: argparse.Namespace) -> int:
    """Export; print progress on standard error and what was made on standard output."""
    if not 1 <= arguments.threads <= 1024:
        raise UsageError(f"--threads {arguments.threads}: expected 1 to 1024")
    # What is cheap to see comes before what takes seconds to import.
    from omni_ros.models.export.families import needs_joints
    from omni_ros.models.export.folder import check_target
    from omni_ros.models.export.joints import parse_joints

    joints = None
    if arguments.joints is not None or needs_joints(arguments.checkpoint):
        joints = parse_joints(arguments.joints)
    cameras = parse_cameras(arguments.cameras)
    check_target(arguments.out, force=arguments.force)
    # Both warn about each other whenever they are imported.
    for logger in ("torchao", "torch.utils._pytree"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    for module in ("torch", "safetensors", "executorch.exir", "torchao"):
        require(module, PURPOSE)
    from omni_ros.models.export.lower import LoweringError

    steps = Steps()
    try:
        manifest = steps.run(export, arguments, joints, cameras, steps.say)
    except ValueError as error:
        raise UsageError(as_options(str(error))) from error
    except LoweringError as error:
        # No mistake of the user's: the network does not become what it should.
        print(f"omni export: error: {error}; {_left(arguments)}", file=sys.stderr)
        return 1
    from omni_ros.cli.inspect import summary

    write(summary(manifest, width=terminal_width()))
    if getattr(manifest, "joints", None) == "raw":
        steps.note("joints are raw: this bundle is for comparisons, and no player takes it")
    return 0


def as_options(text: str) -> str:
    """Return an error's advice as this command spells it."""
    for parameter, option in SPELLINGS.items():
        text = text.replace(parameter, option)
    return text


def parse_cameras(text: str | None) -> int | list[str] | None:
    """Return how many cameras, or which, None for all."""
    if text is None:
        return None
    if text.strip().lstrip("-").isdecimal():
        return int(text)
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"--cameras {text!r}: expected a number, or names with commas between")
    return names


def export(arguments: argparse.Namespace, joints: Any, cameras: Any, say: Any) -> Any:
    """Call the exporter with the options of the command line."""
    require("torch", PURPOSE).set_num_threads(arguments.threads)
    from omni_ros.models.export.families import QWEN, family_of

    if family_of(arguments.checkpoint) == QWEN:
        return export_qwen(arguments, say)
    refuse_voice_arguments(arguments)
    from omni_ros.models.export.bundle import export_checkpoint

    return export_checkpoint(
        arguments.checkpoint, arguments.out, joints=joints, backbone=arguments.backbone,
        base=arguments.base, recipe=arguments.recipe, lerobot_compat=arguments.lerobot_compat,
        dataset=arguments.dataset, statistics=arguments.stats, cameras=cameras,
        aloha=arguments.aloha, relative=arguments.relative, vision_heads=arguments.vision_heads,
        name=arguments.name, threads=arguments.threads, allow_portable=arguments.allow_portable,
        force=arguments.force, progress=say,
    )  # fmt: skip


class Steps:
    """Lines about how far it is, and a last one however it ends."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def say(self, line: str) -> None:
        """Print a line with the time since the start."""
        elapsed = time.monotonic() - self._started
        print(f"[{elapsed:7.1f} s] {line}", file=sys.stderr, flush=True)

    def note(self, line: str) -> None:
        """Print a line for the user to heed."""
        print(f"note: {line}", file=sys.stderr, flush=True)

    def run(self, work: Any, arguments: argparse.Namespace, *rest: Any) -> Any:
        """Do the work; whatever stops it, say that nothing was left."""
        try:
            return work(arguments, *rest)
        except (KeyboardInterrupt, SystemExit):
            # Ctrl-C, or a plain `kill`, which `main` lets unwind like it.
            self.note(f"interrupted; {_left(arguments)}")
            raise
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):
                raise
            raise UsageError(
                f"{arguments.out}: {os.strerror(error.errno)}; {_left(arguments)}. Give a place "
                "with more room: a bundle takes about as much as its checkpoint in float32, with "
                "--recipe int8 a quarter of it"
            ) from error


def _left(arguments: argparse.Namespace) -> str:
    kept = arguments.force and arguments.out.exists()
    return f"{arguments.out} is as it was" if kept else "nothing was written"
