# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings as tests: what the robot did once, it shall do again.

    from omni_ros.replay.testing import assert_replays

    def test_picking_has_not_changed():
        assert_replays("bags/pick.mcap", "bundles/pick_place")

With the plug-in (`pytest -p omni_ros.replay.pytest_plugin`, or `pytest_plugins` in conftest.py) each bag
of a folder is a test, without a line of Python; see docs/replay.md.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from omni_ros.replay.replaying import Options, Replay, replay
from omni_ros.replay.summary import summary
from omni_ros.replay.verdict import Kind


class NotReplayed(AssertionError):
    """A recording that did not come out again. `result`: all that was found."""

    def __init__(self, text: str, result: Replay) -> None:
        super().__init__(text)
        self.result = result


def assert_replays(
    bag: str | os.PathLike[str], bundle: str | os.PathLike[str], *, incomplete: bool = False,
    player: bool = False, report: str | os.PathLike[str] | None = None, **options: Any,
) -> Replay:
    """Fail unless a bundle decides again what was recorded; return all that was found.

    :param bag: a folder of rosbag2 or one of its files. :param bundle: a folder, or a name.
    :param incomplete: let a recording pass in which something is missing and nothing differs.
    :param player: the player's commands are compared too. :param report: where to write the page, if
        it fails. :param options: of `replaying.Options`: robot, tolerance, strict, instruction, ...
    :raises NotReplayed: an AssertionError with the verdict, the stage and what was changed.
    :raises ValueError: bag or bundle cannot be used.
    """
    chosen = Options(**options)
    result = replay(bag, bundle, options=chosen)
    if player:
        from omni_ros.replay.player import replay_player

        result.player = replay_player(Path(bag), chosen)
    good = (Kind.SAME, Kind.WITHIN, *((Kind.INCOMPLETE,) if incomplete else ()))
    if result.overall not in good:
        text = summary(result)
        if report is not None:
            from omni_ros.replay.page import write_page

            write_page(Path(report), result)
            text += f"\nreport: {report}"
        raise NotReplayed(text, result)
    return result
