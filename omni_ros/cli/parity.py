# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni parity`: does a bundle compute what the training code computed, from pixels to actions?

A reference set holds one observation and every tensor that LeRobot itself made of it. Comparing
needs no PyTorch, so that it can be done on the robot; exporting first (`--recipe`) does.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omni_ros.cli import UsageError, parity_openpi, parity_voice
from omni_ros.cli.children import child_environment
from omni_ros.cli.report import format_table, terminal_width, write
from omni_ros.telemetry.provenance import one_line, provenance

FAMILIES = ("smolvla", "pi0", "pi05")
#: Modules that compare voices; a set says which it is of.
VOICES = ("omni_ros.parity.piper", "omni_ros.parity.qwen3_tts")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni parity`."""
    add = parser.add_argument
    add("bundle", type=Path, nargs="?", metavar="BUNDLE", help="a bundle of the set's checkpoint")
    add("--oracle", type=Path, metavar="DIR",
        help="reference set: checkpoint/, vlm/ or tokenizer/, arch.json, tensors/")  # fmt: skip
    add("--recipe", choices=("fp32", "int8"),
        help="instead of BUNDLE: export the set's checkpoint to a temporary one first")  # fmt: skip
    add("--backbone", type=Path, metavar="DIR",
        help="for --recipe: the backbone's config and tokenizer (default: DIR/vlm, DIR/tokenizer)")  # fmt: skip
    add("--threads", type=int, default=1, metavar="N", help="threads to run with (default 1)")
    add("--json", type=Path, metavar="FILE", help="write all rows to FILE as JSON")
    parity_openpi.add_arguments(parser)
    parity_voice.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare and print a row a tensor. Exit status 1 if one does not pass."""
    if arguments.openpi is not None:
        return parity_openpi.run(arguments)
    if arguments.against is not None:
        return parity_voice.run(arguments)
    if arguments.oracle is None:
        raise UsageError(
            "neither --oracle nor --openpi nor --against given; expected what to compare with")
    if (arguments.bundle is None) == (arguments.recipe is None):
        given = "neither" if arguments.bundle is None else "both"
        raise UsageError(f"{given} of BUNDLE and --recipe given; expected exactly one of them")
    if not 1 <= arguments.threads <= 1024:
        raise UsageError(f"--threads {arguments.threads}: expected 1 to 1024")
    from omni_ros.parity.reference import read_reference

    voice = voice_of(arguments.oracle)
    if voice is not None:
        if arguments.bundle is None:
            raise UsageError("--recipe given, and the set is a voice's; expected BUNDLE")
        return finish(arguments, measure_voice(arguments, voice))
    reference = read_reference(arguments.oracle)
    with tempfile.TemporaryDirectory(prefix="omni_parity_") as folder:
        bundle = arguments.bundle
        if bundle is None:
            bundle = Path(folder) / f"{arguments.oracle.absolute().name}.bundle"
            export(arguments, bundle)
        document = measure(bundle, reference, arguments.threads)
    return finish(arguments, document)


def finish(arguments: argparse.Namespace, document: dict[str, Any]) -> int:
    """Print the document and return the exit status."""
    write(render(document, terminal_width()))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0 if document["passed"] else 1


def export(arguments: argparse.Namespace, out: Path) -> None:
    """Export the set's checkpoint in a process of its own: this one stays without PyTorch."""
    from omni_ros.parity.reference import read_object

    backbone = arguments.backbone
    for name in ("vlm", "tokenizer"):
        if backbone is None and (arguments.oracle / name).is_dir():
            backbone = arguments.oracle / name
    words = [arguments.oracle / "checkpoint", "--out", out, "--joints", "raw"]
    words += ["--recipe", arguments.recipe, "--threads", arguments.threads]
    words += [] if backbone is None else ["--backbone", backbone.absolute()]
    # No checkpoint of a π0 says how many heads its vision tower has.
    arch = read_object(arguments.oracle / "arch.json")
    heads = arch.get("tiny", {}).get("vis_heads")
    if heads is not None and arch.get("policy_type") in ("pi0", "pi05"):
        words += ["--vision-heads", heads]
    words[0] = words[0].absolute()
    done = subprocess.run(
        [sys.executable, "-m", "omni_ros.cli.main", "export", *map(str, words)],
        stdout=subprocess.DEVNULL, env=child_environment(), cwd="/", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise UsageError(
            f"{arguments.oracle / 'checkpoint'} could not be exported, see above (status "
            f"{done.returncode})"
        )


def measure(bundle: Path, reference: Any, threads: int) -> dict[str, Any]:
    """Return the document: every row, and whether all passed."""
    from omni_ros.bundles import read_manifest
    from omni_ros.parity.policy import parity_rows
    from omni_ros.policy.flow_policy import FlowPolicy

    family = read_manifest(bundle).family
    if family not in FAMILIES:
        raise UsageError(f"{bundle} is of the family {family}; expected {', '.join(FAMILIES)}")
    with FlowPolicy(bundle, threads=threads) as policy:
        rows = parity_rows(policy, reference)
        recipes = {name: entry.recipe for name, entry in policy.manifest.programs.items()}
    return {
        "parity": str(reference.folder),
        "bundle": policy.manifest.name,
        "family": family,
        "recipes": recipes,
        "recorded_by": f"LeRobot {reference.arch.get('recorded_by_lerobot', '?')}",
        "threads": threads,
        "rows": [row.data() for row in rows],
        "passed": all(row.passed for row in rows),
        "provenance": provenance(),
    }


def voice_of(oracle: Path) -> Any:
    """Return the module that compares a voice with this set; None if it is a policy's."""
    for name in VOICES:
        module = importlib.import_module(name)
        if module.is_reference(oracle):
            return module
    return None


def measure_voice(arguments: argparse.Namespace, voice: Any) -> dict[str, Any]:
    """Return the document of a voice."""
    from omni_ros.bundles.named import bundle_folder

    found = voice.measure(
        bundle_folder(str(arguments.bundle)), arguments.oracle, arguments.threads)  # fmt: skip
    rows = found.pop("rows")
    return {
        "parity": str(arguments.oracle), "family": voice.FAMILY, **found,
        "threads": arguments.threads, "rows": [row.data() for row in rows],
        "passed": all(row.passed for row in rows), "provenance": provenance(),
    }


def render(document: dict[str, Any], width: int = 80) -> str:
    """Return the document as text: a table, the sum of it, the provenance."""
    table = [_cells(row) for row in document["rows"]]
    header = ("tensor", "max abs diff", "relative", "tolerance", "")
    recipes = sorted(set(document["recipes"].values()))
    title = f"{document['bundle']} ({', '.join(recipes)}) against {document['recorded_by']}"
    failed = [row["name"] for row in document["rows"] if not row["passed"]]
    total = len(document["rows"])
    verdict = f"all {total} pass" if not failed else (
        f"{len(failed)} of {total} FAIL: {', '.join(failed)}")
    lines = [
        "relative: 2-norm of the difference over that of the reference. tolerance: of the largest "
        "absolute difference; with `rel` of the relative one; with `x` how many times more or less "
        "than recorded an input may move the actions.",
        *(f"{row['name']}: {row['note']}." for row in document["rows"] if row["note"]),
        one_line(document["provenance"]),
    ]
    prose = [
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines
    ]
    return "\n".join([title, "", format_table(header, table), "", verdict, "", *prose])


def _cells(row: dict[str, Any]) -> Sequence[str]:
    kind = row["measured"]
    limit = {"difference": f"{row['tolerance']:.0e}", "relative": f"{row['tolerance']:g} rel",
             "ratio": f"{row['tolerance']:g} x"}[kind]  # fmt: skip
    figures = [_figure(row["difference"]), _figure(row["relative"])]
    if kind == "ratio":
        figures = ["", "?" if row["value"] is None else f"{row['value']:.3f} x"]
    return [row["name"], *figures, limit, "pass" if row["passed"] else "FAIL"]


def _figure(value: float | None) -> str:
    return "not finite" if value is None else "0" if value == 0 else f"{value:.1e}"
