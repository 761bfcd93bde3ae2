# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run the whole graph as a child, for the length of a block."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from omni_ros.cli.processes import stop_tree

LAUNCH = ("ros2", "launch", "omni_ros", "vla.launch.py", "policy:=scripted", "world:=true")


def say(text: str) -> None:
    """Tell on standard error what goes on, so that standard output holds only the result."""
    print(text, file=sys.stderr, flush=True)


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
            preexec_fn=os.setpgrp,
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
