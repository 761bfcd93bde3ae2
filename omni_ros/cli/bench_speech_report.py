# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The report of `omni bench speech` as text."""

from __future__ import annotations

import textwrap
from typing import Any

from omni_ros.cli.baseline import percentile
from omni_ros.cli.report import format_table
from omni_ros.telemetry.provenance import one_line

STAGES = ("phonemes", "text", "flow", "decoder")


def spread(values: list[float], scale: float = 1.0, digits: int = 0) -> str:
    """Return the median, and the 10th and 90th percentile behind it."""
    low, middle, high = (scale * percentile(values, share) for share in (0.1, 0.5, 0.9))
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the document as tables and sentences."""
    runs = document["runs"]
    rows = []
    for name, found in runs.items():
        for key, side in found.items():
            rows.append((
                name, key, f"{percentile([r['audio'] for r in side], 0.5):.1f}",
                spread([r["first"] for r in side], 1e3),
                spread([r["total"] / r["audio"] for r in side], 1, 3),
                f"{1e3 * max(r['gap'] for r in side):.0f}",
            ))
    head = ("side", "said", "audio s", "first audio ms", "RTF", "gap ms")
    own = runs["omni_ros"]
    stages = []
    for key, side in own.items():
        for what, part in (("first chunk", "first_stages"), ("all", "stages")):
            stages.append((key, what, *(
                spread([r[part].get(stage, 0.0) for r in side], 1e3, 1) for stage in STAGES)))
    lines = []
    if "piper-tts" in runs:
        told = []
        for key in own:
            pairs = list(zip(runs["piper-tts"][key], own[key], strict=True))
            first = [b["first"] / a["first"] for b, a in pairs]
            cost = [b["total"] / b["audio"] / (a["total"] / a["audio"]) for b, a in pairs]
            told.append(f"{key}: first audio {spread(first, 1, 1)}, RTF {spread(cost, 1, 2)}")
        lines.append(f"piper-tts / omni_ros, round by round: {'; '.join(told)}.")
        facts = document["piper"]
        lines.append(f"piper-tts {facts['piper']}, onnxruntime {facts['onnxruntime']}.")
    lines += [
        f"Smallest against largest chunks: {document['streaming']['largest_difference']:.1e} of full "
        "scale.",
        "Medians over rounds, 10th to 90th percentile behind them; gap: the longest of all rounds, of a "
        "sink that plays from the first chunk on.",
        f"Opened in {document['open']:.1f} s, golden vectors included.",
    ]
    lines += recognised(document.get("recognised"))
    lines.append(one_line(document["provenance"]))
    prose = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
             for line in lines]
    title = (f"{document['bundle']}: {document['rounds']} rounds, {document['threads']} threads")
    return "\n".join([
        title, "", format_table(head, rows), "",
        format_table(("said", "ms of", *STAGES), stages), "", *prose,
    ])


def recognised(found: dict[str, Any] | None) -> list[str]:
    """Return what a recogniser understood."""
    if found is None:
        return []
    lines = []
    for name in ("plain", "written"):
        part = found[name]
        rates = ", ".join(f"{rate:.3f}" for rate in part["error_rates"])
        lines.append(f"Word error rate of {part['sentences']} {name} sentences ({part['words']} words) "
                     f"with the seeds {', '.join(map(str, part['seeds']))}: {rates}.")
        lines += [f"  {m['text']} -> {m['heard']} (seed {m['seed']})" for m in part["misheard"]]
    return [*lines, f"{found['recogniser']}, {found['weights']}."]
