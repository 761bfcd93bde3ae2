# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni parity BUNDLE --against BUNDLE`: what quantising a voice changes in what it says."""

from __future__ import annotations

import argparse
import json
import statistics
import textwrap
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError
from omni_ros.cli.report import format_table, terminal_width, write
from omni_ros.telemetry.provenance import one_line, provenance


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a comparison of two bundles of a voice."""
    add = parser.add_argument_group(
        "with a Qwen3-TTS bundle of the same checkpoint in fp32, instead of --oracle").add_argument
    add("--against", type=Path, metavar="BUNDLE",
        help="say 12 fixed texts with both, greedily, and compare codes and samples")  # fmt: skip
    add("--frames", type=int, default=40, metavar="N",
        help="of each text, at most (default 40; 12.5 are a second)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Compare and print a row a quantisation. A difference is no failure: nothing is judged."""
    if arguments.bundle is None:
        raise UsageError("--against needs BUNDLE; expected two bundles to compare")
    if arguments.oracle is not None:
        raise UsageError("--against and --oracle given; expected one of them")
    if not 1 <= arguments.frames <= 4096:
        raise UsageError(f"--frames {arguments.frames}: expected 1 to 4096")
    from omni_ros.parity.fidelity import measure

    document = measure(arguments.bundle, arguments.against, frames=arguments.frames,
                       threads=arguments.threads)  # fmt: skip
    document["provenance"] = provenance()
    write(render(document, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the document as text."""
    table = []
    for row in document["rows"]:
        until = row["until_differs"]
        untouched = sum(u == n for u, n in zip(until, row["frames"], strict=True))
        snr = row["snr_db"]
        table.append((
            row["variant"], f"{min(until)}", f"{statistics.median(until):g}", f"{max(until)}",
            f"{untouched}", f"{row['equal']:.1%}", f"{row['same_past']:.1%}",
            "equal" if snr is None else f"{snr:.1f}",
        ))  # fmt: skip
    header = ("of the bundle", "first", "median", "last", "whole", "codes", "next", "SNR, dB")
    prose = (
        f"{document['texts']} texts, greedily, up to {document['frames']} frames of each. first, "
        "median, last: frames before a code differs; whole: texts without any such; codes: share "
        "that is equal; next: the same if the past is the unquantised voice's (code 0 for a "
        "talker, the others for a predictor); SNR: of the samples, those of the unquantised voice "
        "being the signal. Once a code differs both go on from different pasts, so that codes and "
        "SNR then say little.",
        one_line(document["provenance"]),
    )
    lines = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
             for line in prose]  # fmt: skip
    title = f"{document['bundle']} against {document['against']}"
    return "\n".join([title, "", format_table(header, table), "", *lines])
