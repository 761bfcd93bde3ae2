# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni record`: record the running graph, or mend a recording that was cut off."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
from pathlib import Path

from omni_ros.cli import UsageError
from omni_ros.cli.report import write
from omni_ros.requirements import require


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni record`."""
    add = parser.add_argument
    add("bag", nargs="?", default="", metavar="BAG",
        help="folder of the bag (default: omni_DATE-TIME in the current folder)")  # fmt: skip
    add("--mend", action="store_true",
        help="close the files of a recording that was killed, so that all readers open it; records "
             "nothing")  # fmt: skip
    add("--seconds", type=float, default=0.0, metavar="S", help="how long (default: until Ctrl-C)")
    add("--robot", default="tabletop", metavar="ROBOT", help="robot YAML, as given to the launch")
    add("--bundle", default="tabletop", metavar="BUNDLE",
        help="bundle of the policy, as given to the launch; '' for none")  # fmt: skip
    add("--namespace", default="", metavar="NS", help="namespace of the graph")
    add("--all-pictures", action="store_true",
        help="every picture, not only those that an observation used")  # fmt: skip
    add("--compressed", action="store_true", help="pictures come on TOPIC/compressed")
    add("--use-sim-time", action="store_true", help="the graph takes its time from /clock")
    add("--max-mb", type=int, default=8000, metavar="MB", help="all files together (default 8000)")
    add("--file-mb", type=int, default=512, metavar="MB", help="of one file (default 512)")
    add("--keep", choices=("first", "last"), default="first",
        help="at --max-mb: stop (first, default), or give up the oldest file (last)")  # fmt: skip
    add("--min-free-mb", type=int, default=200, metavar="MB",
        help="left to others on the disk (default 200)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Record until it is over, or mend."""
    if arguments.mend:
        return _mend(arguments.bag)
    _check(arguments)
    require("rclpy", "to record")
    require("omni_ros.msg", "to record")
    require("mcap", "to write a bag")
    child = subprocess.Popen(_command(arguments), preexec_fn=os.setpgrp)
    try:
        return child.wait()
    except (KeyboardInterrupt, SystemExit):
        child.send_signal(signal.SIGINT)
        return child.wait(timeout=30.0)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def _check(arguments: argparse.Namespace) -> None:
    """:raises UsageError: a number that the recorder does not take."""
    if not 0.0 <= arguments.seconds <= 1e9:
        raise UsageError(f"--seconds {arguments.seconds:g}: expected 0 (until Ctrl-C) to 1e9")
    for name, low, high in (("max_mb", 1, 10**8), ("file_mb", 1, 10**6), ("min_free_mb", 0, 10**8)):
        value = getattr(arguments, name)
        if not low <= value <= high:
            raise UsageError(f"--{name.replace('_', '-')} {value}: expected {low} to {high}")


def _mend(bag: str) -> int:
    from omni_ros.replay.recording_mend import mend

    if not bag:
        raise UsageError("--mend needs the folder of a bag, as in: omni record --mend BAG")
    if not Path(bag).exists():
        raise UsageError(f"there is no {bag}")
    for done in mend(bag):
        state = "was whole" if done.was_closed else f"closed, {done.cut} bytes cut off its end"
        damaged = f", {done.damaged} damaged chunks left out" if done.damaged else ""
        write(f"{done.name}: {done.messages} messages, {state}{damaged}")
    return 0


def _command(arguments: argparse.Namespace) -> list[str]:
    parameters = {
        "bag": arguments.bag, "robot": arguments.robot, "bundle": arguments.bundle,
        "all_pictures": arguments.all_pictures, "compressed": arguments.compressed,
        "use_sim_time": arguments.use_sim_time, "seconds": arguments.seconds,
        "max_mb": arguments.max_mb, "file_mb": arguments.file_mb, "keep": arguments.keep,
        "min_free_mb": arguments.min_free_mb}
    prefix = require("ament_index_python", "to record").get_package_prefix("omni_ros")
    words = [str(Path(prefix) / "lib" / "omni_ros" / "recorder"), "--ros-args", "-r",
             f"__ns:=/{arguments.namespace.strip('/')}"]
    for name, value in parameters.items():
        words += ["-p", f"{name}:={_yaml(value)}"]
    return words


def _yaml(value: object) -> str:
    """A value as rcl's parser takes it: a text stays one, whatever it looks like."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
