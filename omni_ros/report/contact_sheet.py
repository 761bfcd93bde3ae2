# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of a run side by side: one strip an instruction, with its sentence and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omni_ros.report.style import FAINT, INK, QUIET, VERDICTS, new_figure, png, settings

#: Sizes in inches: a frame, what its strip's caption takes, and the gaps.
FRAME, CAPTION, GAP, MARGIN = 1.36, 0.42, 0.06, 0.14


@dataclass(frozen=True)
class Strip:
    """One instruction.

    :param caption: the sentence. :param verdict: a word of `style.VERDICTS`, or another.
    :param note: shown after the verdict, such as the seconds it took.
    :param frames: RGB uint8 (height, width, 3), all of one shape of pixels.
    :param labels: what stands below each frame, such as when it was taken.
    """

    caption: str
    verdict: str
    note: str
    frames: Sequence[np.ndarray]
    labels: Sequence[str]


def contact_sheet(strips: Sequence[Strip], title: str = "") -> bytes:
    """Return the strips below each other as the bytes of a PNG file.

    :raises ValueError: a strip has as many labels as it has not frames.
    """
    for strip in strips:
        if len(strip.labels) != len(strip.frames):
            raise ValueError(f"{strip.caption!r}: {len(strip.frames)} frames, {len(strip.labels)} "
                             "labels; give one for each")
    columns = max([len(strip.frames) for strip in strips] + [1])
    width = 2 * MARGIN + columns * FRAME + (columns - 1) * GAP
    head = 0.34 if title else 0.0
    strip_height = CAPTION + FRAME + 0.24
    height = 2 * MARGIN + head + max(len(strips), 1) * strip_height
    with settings():
        figure = new_figure(height, width)
        if title:
            figure.text(MARGIN / width, 1 - (MARGIN + 0.1) / height, title, fontsize=12,
                        fontweight="bold", va="center")
        for row, strip in enumerate(strips):
            top = MARGIN + head + row * strip_height
            _draw(figure, strip, row + 1, top, width, height)
        return png(figure)


def _draw(figure, strip: Strip, number: int, top: float, width: float, height: float) -> None:
    """Draw a strip whose upper edge is `top` inches below the figure's."""
    def up(inches: float) -> float:
        return 1 - inches / height

    colour = VERDICTS.get(strip.verdict, QUIET)
    line = up(top + 0.24)
    figure.text(MARGIN / width, line, f"{number}  {strip.caption}", fontsize=10, va="center",
                color=INK)
    figure.text(1 - MARGIN / width, line, f"{strip.verdict}  {strip.note}".strip(), fontsize=9,
                va="center", ha="right", color=colour, fontweight="bold")
    for column, (frame, label) in enumerate(zip(strip.frames, strip.labels)):
        left = MARGIN + column * (FRAME + GAP)
        axes = figure.add_axes((left / width, up(top + CAPTION + FRAME), FRAME / width,
                                FRAME / height))
        axes.imshow(frame, interpolation="lanczos", aspect="auto")
        axes.set_xticks([])
        axes.set_yticks([])
        last = column == len(strip.frames) - 1
        for spine in axes.spines.values():
            spine.set_visible(True)
            spine.set_color(colour if last else FAINT)
            spine.set_linewidth(1.6 if last else 0.8)
        figure.text((left + 0.02) / width, up(top + CAPTION + FRAME + 0.11), label, fontsize=7.5,
                    va="center", color=QUIET)
