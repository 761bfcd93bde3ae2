# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni demo`: the whole graph for a short while, then what happened, in plain words.

What `make run` shows: the world, the policy and the player are launched as anyone would launch
them; the arm is told a few things, does them, and a report says how it went. It runs in the ROS
domain of the shell, on this machine only, so that `ros2 topic echo` works beside it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import tempfile
from pathlib import Path

from omni_ros.cli import UsageError
from omni_ros.cli.launched import LAUNCH, refuse_second_player
from omni_ros.requirements import require

POLICIES = ("bundle", "expert", "scripted")
#: Seeds of the demonstration's scenes; neither training nor the bench uses them.
FIRST_SEED = 900_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni demo`."""
    add = parser.add_argument
    add("--policy", choices=POLICIES, default="bundle",
        help="bundle: a learned policy is told what to do; expert: a script that knows where "
        "everything is is told the same; scripted: the arm draws a circle (default bundle)")
    add("--bundle", default="tabletop", help="path or name of the policy's (default tabletop)")
    add("--seed", type=int, default=FIRST_SEED, metavar="N",
        help=f"of the first scene (default {FIRST_SEED})")
    add("--seconds", type=float, default=20.0,
        help="with --policy scripted: how long the arm moves (default 20)")
    add("--report", metavar="FOLDER", type=Path, default=Path("report"),
        help="where the report goes (default report)")
    add("launch_arguments", nargs="*", metavar="NAME:=VALUE",
        help="further arguments of vla.launch.py, e.g. log_level:=warn")


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration; 1 if something was not well."""
    check(arguments)
    require("rclpy", "to run the nodes")
    require("omni_ros.msg", "to read the player's status")
    if shutil.which(LAUNCH[0]) is None:
        raise UsageError("`ros2` is not on the PATH; source the setup file of ROS 2 first")
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    from omni_ros.cli.player_probe import find_player

    make_folder(arguments.report)
    refuse_second_player(find_player(), os.environ.get("ROS_DOMAIN_ID") or "0")
    which = "demo_scripted" if arguments.policy == "scripted" else "demo_instructions"
    return importlib.import_module(f"omni_ros.cli.{which}").run(arguments)


def check(arguments: argparse.Namespace) -> None:
    """Refuse options out of range, or that do not go together.

    :raises UsageError: naming the option, what was given and what is expected.
    """
    if not 1.0 <= arguments.seconds <= 3600.0:
        raise UsageError(f"--seconds {arguments.seconds:g}: expected 1 to 3600")
    if not 0 <= arguments.seed <= 2**62:
        raise UsageError(f"--seed {arguments.seed}: expected 0 to {2**62}")
    bad = [word for word in arguments.launch_arguments if ":=" not in word]
    if bad:
        raise UsageError(f"launch arguments are written NAME:=VALUE, not {' '.join(bad)}")
    if arguments.policy == "scripted":
        return
    own = ("namespace", "policy", "bundle", "world", "instruction", "use_sim_time")
    for word in arguments.launch_arguments:
        name = word.partition(":=")[0]
        if name in own:
            raise UsageError(f"{word}: the demonstration sets {name} itself; leave it out, or use "
                             "its options (omni demo --help)")


def make_folder(folder: Path) -> None:
    """Make the report's folder and try to write there, before anybody waits for a run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(
            f"--report {folder}: cannot be written ({error.strerror}); give a folder that can"
        ) from error
