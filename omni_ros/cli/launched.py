# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run the whole graph as a child, for the length of a block."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.processes import group_that_ends_with_parent, stop_tree
from omni_ros.requirements import require

LAUNCH = ("ros2", "launch", "omni_ros", "vla.launch.py", "policy:=scripted", "world:=true")


def say(text: str) -> None:
    """Tell on standard error what goes on, so that standard output holds only the result."""
    print(text, file=sys.stderr, flush=True)


def rise(before: Any, after: Any, counter: str) -> int:
    """Return by how much a counter of the player's status rose.

    :raises RuntimeError: it fell; the two statuses are not of one run of one player.
    """
    old, new = getattr(before, counter), getattr(after, counter)
    if new < old:
        raise RuntimeError(
            f"the player's counter {counter} fell from {old} to {new}: the player was restarted "
            "meanwhile, or a second one runs in this domain"
        )
    return new - old


def own_domain(given: int | None, purpose: str) -> int:
    """Make sure that nodes can be run, in a domain apart; return its number.

    Call it before rclpy starts: the graph must neither see nor disturb another robot's.

    :param given: the user's choice, None for one of this process. :param purpose: ends "needed ...".
    :raises MissingDependency, UsageError: ROS 2 or the messages are not there.
    """
    require("rclpy", purpose)
    require("omni_ros.msg", purpose)
    if shutil.which(LAUNCH[0]) is None:
        raise UsageError("`ros2` is not on the PATH; source the setup file of ROS 2 first")
    domain = 1 + os.getpid() % 100 if given is None else given
    os.environ["ROS_DOMAIN_ID"] = str(domain)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    return domain


def refuse_second_player(found: str | None, domain: str) -> None:
    """Refuse to start a graph where a player's status was found already.

    :param found: the topic of that status, None if there was none.
    :raises UsageError: there was one.
    """
    if found is not None:
        raise UsageError(
            f"an action_player is running already: {found} is published in ROS_DOMAIN_ID={domain}. "
            "End that graph, or use another domain, as in: export ROS_DOMAIN_ID="
            f"{41 if domain == '40' else 40}"
        )


@contextmanager
def launched(
    command: list[str], log: Path
) -> Iterator[tuple[subprocess.Popen, Callable[[], None]]]:
    """Run the graph for the length of the block.

    Yields the process and a function that raises RuntimeError once the graph has ended by itself.
    A RuntimeError that leaves the block gets the end of what the graph printed.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Its own process group: Ctrl-C here reaches it once, through stop_tree, and not twice.
            # Not its own session: the kernel's autogroups would then weigh the whole graph against
            # all else in this session, and a bench would flatter the player.
            preexec_fn=group_that_ends_with_parent(),
        )

    def check_alive() -> None:
        if process.poll() is not None:
            raise RuntimeError(f"`{' '.join(command)}` ended with status {process.returncode}")

    try:
        yield process, check_alive
    except RuntimeError as error:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        raise RuntimeError(f"{error}. The graph's last lines: {' | '.join(tail)}") from error
    finally:
        stop_tree(process)
