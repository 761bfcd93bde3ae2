# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How the report's pictures look: one palette, one size, legible on a phone."""

from __future__ import annotations

import io
from typing import Any

from omni_ros.requirements import require

INK = "#1f2430"
QUIET = "#6b7280"
FAINT = "#d9dce2"
BLUE = "#2563a8"
ORANGE = "#d9822b"
GREEN = "#2f855a"
RED = "#c0392b"
#: Colours of things that follow each other, told apart by their neighbours only.
TURNS = (BLUE, ORANGE, GREEN)
VERDICTS = {"success": GREEN, "wrong": RED, "timeout": ORANGE,
            "same": GREEN, "within": BLUE, "incomplete": ORANGE, "different": RED}

#: A picture is as wide as a phone's screen; at this size its text is about 9 points there.
WIDTH_IN = 5.6
DPI = 200

_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
}


def settings() -> Any:
    """Return a context in which matplotlib draws in this style, whatever the user's own is."""
    style = require("matplotlib.style", "to draw the report's pictures")
    # "default" first: a matplotlibrc of the user's must not leak into the report.
    return style.context(["default", _SETTINGS])


def new_figure(height_in: float, width_in: float = WIDTH_IN) -> Any:
    """Return an empty figure; it belongs to nobody's window and needs no display."""
    require("matplotlib", "to draw the report's pictures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Any) -> bytes:
    """Return a figure as a PNG file's bytes; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
