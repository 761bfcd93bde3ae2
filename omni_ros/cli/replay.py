# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni replay`: would the robot decide the same again?

Exit statuses: 0 same or within tolerance, 1 different, 3 incomplete (nothing differs in what there is,
but something was not recorded), 2 wrong usage, or a bag or bundle that cannot be read.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.progress import Bar
from omni_ros.cli.report import terminal_width, write

INCOMPLETE = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni replay`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = ("exit status: 0 same or within tolerance, 1 different, 3 incomplete, 2 a bag or "
                     "bundle\nthat cannot be used. docs/replay.md has an example.")
    add = parser.add_argument
    add("bag", type=Path, metavar="BAG", help="a folder of rosbag2, or one of its files")
    add("--bundle", required=True, metavar="B", help="a bundle: a folder, or a name")
    add("--json", type=Path, metavar="FILE", help="write everything to FILE as JSON")
    add("--report", type=Path, metavar="FILE.html", help="write a page with plots")
    add("--strict", action="store_true",
        help="not a bit may differ, also where machine, versions or bundle do")
    add("--tolerance", type=float, metavar="X",
        help="largest difference of a normalised action instead of the bundle's own")
    add("--threads", type=int, metavar="N", help="threads of the programs")
    other = parser.add_argument_group("instead of what was recorded").add_argument
    other("--against", metavar="B", help="compare with another bundle on the same observations")
    other("--openpi", metavar="URL", help="ask an OpenPI server for the same observations")
    other("--mapping", type=Path, metavar="FILE",
          help="for --openpi: what it calls cameras and joints (config/openpi/)")
    other("--player", action="store_true",
          help="run the player and its limiter again too, and compare the commands")
    which = parser.add_argument_group("of a bag from elsewhere").add_argument
    which("--robot", default="", metavar="YAML", help="robot YAML or name; default: as recorded")
    which("--namespace", default="", metavar="NS", help="of the policy, if there are several")
    which("--source", default="", metavar="NAME", help="whose chunks; default: the policy's own")
    which("--instruction", metavar="TEXT", help="the sentence, where none was recorded")


def run(arguments: argparse.Namespace) -> int:
    """Replay, print, write; return the exit status.

    :raises UsageError: also where a file cannot be read or written: a status of 1 would say "different".
    """
    try:
        return _run(arguments)
    except OSError as error:
        raise UsageError(f"{error.filename or 'a file'}: {error.strerror or error}") from error


def _run(arguments: argparse.Namespace) -> int:
    from omni_ros.replay.verdict import Kind

    result = measure(arguments)
    from omni_ros.replay.summary import document, summary

    write(summary(result, terminal_width()))
    if arguments.json is not None:
        facts = document(result)
        arguments.json.write_text(json.dumps(facts, indent=2, allow_nan=False) + "\n",
                                  encoding="utf-8")
    if arguments.report is not None:
        from omni_ros.replay.page import write_page

        write_page(arguments.report, result)
        write(f"report: {arguments.report}")
    return {Kind.DIFFERENT: 1, Kind.INCOMPLETE: INCOMPLETE}.get(result.overall, 0)


def measure(arguments: argparse.Namespace) -> Any:
    """Return the `Replay` that was asked for."""
    check(arguments)
    from omni_ros.replay.replaying import Options, replay

    options = Options(
        robot=arguments.robot, namespace=arguments.namespace, source=arguments.source,
        instruction=arguments.instruction, tolerance=arguments.tolerance, strict=arguments.strict,
        threads=arguments.threads)
    bar = Bar()

    def shown(done: int, total: int) -> None:
        bar.show(done / total, f"chunk {done} of {total}")

    result = replay(arguments.bag, arguments.bundle, against=arguments.against, options=options,
                    progress=shown)
    if arguments.openpi is not None:
        from omni_ros.replay.remote import replay_remote

        result.remote = replay_remote(
            arguments.bag, arguments.bundle, arguments.openpi, mapping=arguments.mapping,
            options=options, progress=shown)
    if arguments.player:
        from omni_ros.replay.player import replay_player

        result.player = replay_player(arguments.bag, options)
    bar.end()
    return result


def check(arguments: argparse.Namespace) -> None:
    """:raises UsageError: options that do not go together."""
    if arguments.against is not None and arguments.openpi is not None:
        raise UsageError("--against and --openpi given; expected one of them")
    if arguments.tolerance is not None and not 0.0 <= arguments.tolerance < float("inf"):
        raise UsageError(f"--tolerance {arguments.tolerance}: expected 0 or more")
    if arguments.threads is not None and not 1 <= arguments.threads <= 1024:
        raise UsageError(f"--threads {arguments.threads}: expected 1 to 1024")
    if arguments.mapping is not None and arguments.openpi is None:
        raise UsageError("--mapping is for --openpi; expected both or neither")
    for option, path in (("--json", arguments.json), ("--report", arguments.report)):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"{option} {path}: there is no folder {path.parent}")
        if path is not None and path.is_dir():
            raise UsageError(f"{option} {path}: that is a folder; expected the name of a file")
