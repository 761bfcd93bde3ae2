# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What `omni bench policy` and `omni bench memory` print."""

from __future__ import annotations

import textwrap
from typing import Any

from omni_ros.cli.report import format_table
from omni_ros.telemetry.provenance import one_line


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the report of `omni bench policy` as text."""
    recipes = ", ".join(sorted(set(document["recipes"].values())))
    title = (
        f"{document['bundle']} ({recipes}): {document['chunks']} chunks, "
        f"{document['cameras']} of {document['cameras_of_bundle']} cameras, "
        f"{document['threads']} threads"
    )
    sides = [
        [name, *(f"{1e3 * side[key]:.1f}" for key in ("p50", "p99", "max")),
         f"{side['resident'] / 1e6:.0f}"]
        for name, side in document["sides"].items()
    ]
    parts = [title, "", format_table(
        ("a chunk", "p50 ms", "p99 ms", "max ms", "resident MB"), sides), ""]
    baseline = next((name for name in document["sides"] if name != "bundle"), None)
    header = ["program", "runs", "ms", "GFLOP/s", "of peak", "GB/s", "of copy"]
    rows = []
    for row in document["stages"]:
        cells = [row["program"], str(row["runs"]), f"{1e3 * row['seconds']:.1f}"]
        cells += [f"{row['gflops']:.0f}", f"{100 * row['share_of_peak']:.0f} %"] if (
            "gflops" in row) else ["?", "?"]
        cells.append(f"{row['bytes_per_second'] / 1e9:.1f}")
        cells.append(f"{100 * row['share_of_bandwidth']:.0f} %")
        if baseline:
            cells += [f"{1e3 * row['baseline_seconds']:.1f}", f"{row['ratio']:.2f}"] if (
                "ratio" in row) else ["?", "?"]
        rows.append(cells)
    parts += [format_table(header + ([f"{baseline} ms", "ratio"] if baseline else []), rows), ""]
    limits = document["machine"]
    lines = []
    if baseline:
        ratio = document["ratio"]
        lines.append(
            f"{baseline} / bundle, round by round: {ratio['p50']:.2f} (p10 {ratio['p10']:.2f}, p90 "
            f"{ratio['p90']:.2f}). {baseline}: {document['baseline']}; with as many image slots as "
            "cameras."
        )
    lines += [
        "ms of programs: medians, all runs of a chunk together. Of peak: of "
        f"{limits['peak_gflops']:.0f} GFLOP/s, a float32 product here ({limits['peak_of']}; "
        + ", ".join(f"{name} {value:.0f}" for name, value in limits["gflops"].items())
        + "); int8 and better kernels pass it. Of copy: weights read once a run, of "
        f"{limits['bandwidth'] / 1e9:.1f} GB/s, a copy's bytes read and written.",
        f"The manifest plans {document['memory_planned'] / 1e6:.0f} MB.",
        one_line(document["provenance"]),
    ]
    return "\n".join([*parts, *_fill(lines, width)])


def render_memory(document: dict[str, Any], width: int = 80) -> str:
    """Return the report of `omni bench memory` as text."""
    times = [f"{1e3 * document[key]:.2f}" for key in ("p50", "p99", "max")]
    table = format_table(
        ("chunks", "p50 ms", "p99 ms", "max ms", "growth kB", "most alive kB"),
        [[str(document["chunks"]), *times, f"{document['growth'] / 1e3:.0f}",
          f"{document['largest_call'] / 1e3:.1f}"]],
    )
    lines = [
        f"growth: resident memory after the last chunk less after {document['warm_up']} to warm "
        f"up ({document['resident'] / 1e6:.1f} MB); at most {document['growth_most'] / 1e3:.0f} kB "
        "in between. most alive: Python and numpy memory that one call held beyond what was there "
        "before, at its peak, over "
        f"{document['traced']} calls: no single allocation was larger.",
        f"aims: growth at most {document['growth_aim'] / 1e6:.0f} MB, no allocation over "
        f"{document['call_aim'] / 1024:.0f} KiB: {'met' if document['passed'] else 'NOT met'}.",
        one_line(document["provenance"]),
    ]
    title = f"{document['bundle']}: memory over {document['chunks']} chunks"
    return "\n".join([title, "", table, "", *_fill(lines, width)])


def _fill(lines: list[str], width: int) -> list[str]:
    return [
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines
    ]
