# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The report's plots. Arrays in, the bytes of a PNG file out.

Times are seconds from a common zero, angles in the unit of the topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from omni_ros.report.style import (
    BLUE, FAINT, GREEN, INK, QUIET, RED, TURNS, VERDICTS, new_figure, png, settings)

#: The most points of a line; more cannot be told apart at this size.
POINTS = 4000


@dataclass(frozen=True)
class Span:
    """A stretch of time with a name, such as an instruction; `verdict` gives its colour."""

    start: float
    end: float
    label: str
    verdict: str = ""


@dataclass(frozen=True)
class Rows:
    """The rows of one chunk: when each is due, `times` (k,), and `values` (k, joints)."""

    times: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Limits:
    """Position limits, each (joints,); commands stay `margin` away from both."""

    lower: np.ndarray
    upper: np.ndarray
    margin: np.ndarray


def joints_against_limits(
    times: np.ndarray, positions: np.ndarray, names: Sequence[str], limits: Limits,
    spans: Sequence[Span] = (),
) -> bytes:
    """Draw each joint's measured position over time between its limits.

    :param times: (n,). :param positions: (n, joints); rows of NaN are gaps.
    :param spans: instructions, numbered in the order given.
    """
    count = len(names)
    if positions.shape != (len(times), count):
        raise ValueError(f"positions are {positions.shape}, expected ({len(times)}, {count})")
    step = max(1, len(times) // POINTS)
    with settings():
        figure = new_figure(0.75 + 0.95 * count)
        panels = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        for index, (axes, name) in enumerate(zip(panels, names)):
            low, high = limits.lower[index], limits.upper[index]
            room, inner = 0.08 * (high - low), limits.margin[index]
            axes.set_ylim(low - room, high + room)
            for edge, beyond in ((low, low - room), (high, high + room)):
                axes.axhspan(edge, beyond, color=RED, alpha=0.14, linewidth=0)
                axes.axhline(edge, color=RED, linewidth=0.8)
            for edge in (low + inner, high - inner):
                axes.axhline(edge, color=RED, linewidth=0.5, linestyle=(0, (4, 4)), alpha=0.6)
            for span in spans:
                colour = VERDICTS.get(span.verdict, BLUE)
                axes.axvspan(span.start, span.end, color=colour, alpha=0.08, linewidth=0)
            axes.plot(times[::step], positions[::step, index], color=BLUE, linewidth=1.1)
            axes.set_yticks([low, 0.5 * (low + high), high],
                            [f"{low:.2f}", f"{0.5 * (low + high):.2f}", f"{high:.2f}"], fontsize=7)
            axes.text(0.008, 0.86, name, transform=axes.transAxes, fontsize=8, va="top",
                      fontweight="bold")
        for number, span in enumerate(spans, 1):
            panels[0].text(0.5 * (span.start + span.end), 1.04, str(number), fontsize=8,
                           ha="center", va="bottom", transform=panels[0].get_xaxis_transform(),
                           color=VERDICTS.get(span.verdict, INK), fontweight="bold")
        panels[0].set_title("Joint positions against their limits, rad", pad=14)
        panels[-1].set_xlabel("seconds (numbers above: instruction; red: beyond the limit, "
                              "dashed: margin)", fontsize=8)
        figure.subplots_adjust(left=0.1, right=0.985, top=0.93, bottom=0.075, hspace=0.18)
        return png(figure)


def chunk_seams(
    chunks: Sequence[Rows], command: Rows, names: Sequence[str], title: str = ""
) -> bytes:
    """Draw the rows of successive chunks over each other, and the command that was made of them.

    :param chunks: in the order in which they came; `names` are the joints of their columns.
    :param command: what the player sent; the same joints.
    """
    count = len(names)
    for rows in (*chunks, command):
        if rows.values.shape != (len(rows.times), count):
            raise ValueError(
                f"values are {rows.values.shape}, expected ({len(rows.times)}, {count})")
    with settings():
        figure = new_figure(0.9 + 1.55 * count)
        panels = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        for index, (axes, name) in enumerate(zip(panels, names)):
            axes.plot(command.times, command.values[:, index], color=INK, linewidth=2.6, alpha=0.22,
                      solid_capstyle="round", label="command, 50 Hz" if index == 0 else None)
            for turn, rows in enumerate(chunks):
                colour = TURNS[turn % len(TURNS)]
                axes.plot(rows.times, rows.values[:, index], color=colour, linewidth=0.8,
                          marker="o", markersize=2.2)
                axes.axvline(rows.times[0], color=colour, linewidth=0.5, alpha=0.35)
            axes.set_ylabel(f"{name}, rad", fontsize=8)
            axes.grid(axis="y", color=FAINT, linewidth=0.5)
        if len(command.times):
            panels[-1].set_xlim(command.times[0], command.times[-1])
        panels[0].set_title(title or "Chunk seams", pad=8)
        panels[-1].set_xlabel("seconds; thin and dotted: rows of one chunk each, wide and grey: the "
                              "command", fontsize=8)
        figure.subplots_adjust(left=0.14, right=0.985, top=0.92, bottom=0.1, hspace=0.14)
        return png(figure)


def latencies(stages: Mapping[str, np.ndarray], totals: Mapping[str, np.ndarray]) -> bytes:
    """Draw the median of each stage as a bar and a line to its 99th percentile.

    :param stages: seconds by stage, in their order; they follow each other.
    :param totals: seconds by name from the observation's stamp; drawn apart, below.
    """
    names = [*stages, *totals]
    with settings():
        figure = new_figure(0.95 + 0.34 * max(len(names), 1))
        axes = figure.add_subplot()
        furthest, rows = 0.0, [*stages.items(), *totals.items()]
        for row, (_, seconds) in enumerate(rows):
            values = 1e3 * np.asarray(seconds, dtype=np.float64)
            values = values[np.isfinite(values)]
            row += 0.35 * (row >= len(stages) and bool(stages))
            if not len(values):
                axes.text(0.0, row, " no figure", va="center", fontsize=8, color=QUIET)
                continue
            median, high = np.percentile(values, (50, 99))
            furthest = max(furthest, high)
            colour = BLUE if row < len(stages) else GREEN
            axes.barh(row, median, height=0.62, color=colour)
            axes.plot([median, high], [row, row], color=colour, linewidth=1.2)
            axes.plot([high, high], [row - 0.18, row + 0.18], color=colour, linewidth=1.2)
            axes.text(high, row, f"  {_ms(median)} / {_ms(high)}", va="center", fontsize=8)
        places = [r + 0.35 * (r >= len(stages) and bool(stages)) for r in range(len(names))]
        axes.set_yticks(places, names, fontsize=8, color=INK)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0.0, 1.32 * furthest or 1.0)
        axes.grid(axis="x", color=FAINT, linewidth=0.5)
        axes.set_title("Where the time goes, from picture to command")
        axes.set_xlabel("milliseconds: bar p50, line to p99", fontsize=8)
        figure.tight_layout(pad=0.6)
        return png(figure)


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"
