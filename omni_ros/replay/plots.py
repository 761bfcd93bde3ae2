# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Plots of a replay: recorded and computed actions over each other, and what lies between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omni_ros.replay.verdict import ChunkVerdict, Kind
from omni_ros.report.style import BLUE, FAINT, INK, ORANGE, RED, new_figure, png, settings

#: Chunks whose actions are drawn; more would be a smear.
CHUNKS = 24
#: Joints that get a panel of their own.
JOINTS = 8


def _drawn(verdicts: Sequence[ChunkVerdict]) -> list[ChunkVerdict]:
    """Return the chunks to draw: around the first that is not the same, else from the start."""
    usable = [one for one in verdicts if len(one.recorded)]
    first = next((at for at, one in enumerate(usable)
                  if one.kind in (Kind.DIFFERENT, Kind.WITHIN)), 0)
    start = max(0, min(first - 4, len(usable) - CHUNKS))
    return usable[start:start + CHUNKS]


def actions_overlaid(verdicts: Sequence[ChunkVerdict], names: Sequence[str], units: Sequence[str]
                     ) -> bytes | None:
    """Draw the rows of chunks as recorded, and as computed again, joint by joint."""
    chunks = _drawn(verdicts)
    names = list(names)[:JOINTS]
    if not chunks or not names:
        return None
    zero = chunks[0].stamp_ns
    with settings():
        figure = new_figure(0.9 + 1.15 * len(names))
        panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for index, (axes, name) in enumerate(zip(panels, names)):
            for one in chunks:
                times = _times(one, zero)
                axes.plot(times, one.recorded[:, index], color=INK, linewidth=2.6, alpha=0.22,
                          solid_capstyle="round")
                if one.replayed is not None and one.replayed.shape[1] > index:
                    colour = RED if one.kind is Kind.DIFFERENT else BLUE
                    axes.plot(_times(one, zero, len(one.replayed)), one.replayed[:, index],
                              color=colour, linewidth=0.8)
            axes.set_ylabel(f"{name}, {units[index]}", fontsize=7)
            axes.grid(axis="y", color=FAINT, linewidth=0.5)
        panels[0].set_title("Actions: recorded (grey) and computed again", pad=8)
        panels[-1].set_xlabel("seconds (red: different)", fontsize=8)
        figure.subplots_adjust(left=0.15, right=0.985, top=0.94, bottom=0.07, hspace=0.16)
        return png(figure)


def differences(verdicts: Sequence[ChunkVerdict], names: Sequence[str], units: Sequence[str]
                ) -> bytes | None:
    """Draw the largest difference of each chunk over time, joint by joint, on a logarithmic scale."""
    usable = [one for one in verdicts if len(one.by_joint) == len(names)]
    if not usable:
        return None
    zero = usable[0].stamp_ns
    times = np.array([(one.stamp_ns - zero) * 1e-9 for one in usable])
    table = np.array([one.by_joint for one in usable])
    table[~np.isfinite(table)] = np.nan
    shown = list(range(min(len(names), JOINTS)))
    with settings():
        figure = new_figure(0.9 + 0.95 * len(shown))
        panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for axes, index in zip(panels, shown):
            values = table[:, index]
            nothing = values == 0.0
            axes.set_yscale("log")
            axes.set_ylim(1e-9, max(1.0, 3.0 * float(np.nanmax(values, initial=0.0))))
            axes.plot(times[nothing], np.full(nothing.sum(), 1.4e-9), linestyle="none", marker="|",
                      color=BLUE, markersize=4)
            axes.plot(times[~nothing], values[~nothing], linestyle="none", marker="o", color=RED,
                      markersize=2.6)
            axes.set_ylabel(f"{names[index]}, {units[index]}", fontsize=7)
            axes.grid(axis="y", color=FAINT, linewidth=0.5)
        panels[0].set_title("Largest difference of each chunk", pad=8)
        panels[-1].set_xlabel("seconds (ticks at the bottom: the same, bit for bit)", fontsize=8)
        figure.subplots_adjust(left=0.15, right=0.985, top=0.93, bottom=0.09, hspace=0.18)
        return png(figure)


def times_of_chunks(verdicts: Sequence[ChunkVerdict]) -> bytes | None:
    """Draw what a chunk took when it was recorded, from the receipt of its pictures, and what now."""
    usable = [one for one in verdicts if one.recorded_times or one.times]
    if not usable:
        return None
    zero = usable[0].stamp_ns
    times = np.array([(one.stamp_ns - zero) * 1e-9 for one in usable])
    then = np.array([1e3 * sum(value for name, value in one.recorded_times.items()
                               if name not in ("arrival", "intake")) or np.nan for one in usable])
    now = np.array([1e3 * one.times.get("policy", np.nan) for one in usable])
    with settings():
        figure = new_figure(2.3)
        axes = figure.add_subplot()
        axes.plot(times, then, color=ORANGE, linewidth=1.0, marker="o", markersize=2.4,
                  label="recorded, through the graph")
        axes.plot(times, now, color=BLUE, linewidth=1.0, marker="o", markersize=2.4,
                  label="computed again, the policy alone")
        axes.set_ylim(bottom=0.0)
        axes.set_ylabel("milliseconds", fontsize=8)
        axes.set_xlabel("seconds", fontsize=8)
        axes.grid(axis="y", color=FAINT, linewidth=0.5)
        axes.legend(fontsize=8, loc="upper right")
        axes.set_title("Time a chunk")
        figure.tight_layout(pad=0.6)
        return png(figure)


def commands_overlaid(times: np.ndarray, recorded: np.ndarray, replayed: np.ndarray,
                      names: Sequence[str], unit: str = "rad") -> bytes | None:
    """Draw the player's commands as recorded and as computed again; f64 [n], [n, joints] both."""
    names = list(names)[:JOINTS]
    if not len(times) or not names:
        return None
    with settings():
        figure = new_figure(0.9 + 1.0 * len(names))
        panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for index, (axes, name) in enumerate(zip(panels, names)):
            axes.plot(times, recorded[:, index], color=INK, linewidth=2.6, alpha=0.22)
            axes.plot(times, replayed[:, index], color=BLUE, linewidth=0.8)
            axes.set_ylabel(f"{name}, {unit}", fontsize=7)
            axes.grid(axis="y", color=FAINT, linewidth=0.5)
        panels[0].set_title("Commands: recorded (grey) and played again", pad=8)
        panels[-1].set_xlabel("seconds", fontsize=8)
        figure.subplots_adjust(left=0.15, right=0.985, top=0.93, bottom=0.08, hspace=0.16)
        return png(figure)


def _times(one: ChunkVerdict, zero: int, rows: int | None = None) -> np.ndarray:
    rows = len(one.recorded) if rows is None else rows
    return ((one.stamp_ns - zero) + one.dt_ns * np.arange(1, rows + 1)) * 1e-9
