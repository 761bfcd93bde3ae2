# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`omni inspect`: what is in a bundle, and whether it is what it says.

Needs numpy and PyYAML; with --verify the ExecuTorch wheel's libraries, too, and never PyTorch.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omni_ros.cli import bench_results
from omni_ros.cli.report import format_table, terminal_width, write
from omni_ros.requirements import MissingDependency

MB = 1e6
#: Families of voices, and the module that tells of theirs.
VOICES = {"piper": "omni_ros.cli.inspect_piper", "qwen3_tts": "omni_ros.cli.inspect_qwen3_tts"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `omni inspect`."""
    parser.add_argument("bundle", type=Path, metavar="BUNDLE",
                        help="folder that omni export wrote, or the name of one that set-up made")
    parser.add_argument(
        "--verify", action="store_true",
        help="check every file's SHA-256 and run every golden vector, in a process that may die",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the manifest as JSON")
    parser.epilog = "Exit status 1, and the file's name, if anything is not as it should be."


def run(arguments: argparse.Namespace) -> int:
    """Print the bundle; return 1 if it is faulty."""
    from omni_ros.bundles import BundleError, read_manifest
    from omni_ros.bundles.named import bundle_folder

    try:
        if not arguments.bundle.exists():
            arguments.bundle = bundle_folder(str(arguments.bundle))
        manifest = read_manifest(arguments.bundle)
        # The table first: it helps to understand the fault.
        if not arguments.json:
            write(summary(manifest, width=terminal_width()))
            if manifest.family not in VOICES:
                write("\n" + bench(arguments.bundle, width=terminal_width()))
        checks = verify(arguments.bundle, manifest) if arguments.verify else None
    except BundleError as error:
        if arguments.json:
            write(json.dumps({"bundle": str(arguments.bundle), "fault": str(error)}, indent=2))
        print(f"omni inspect: error: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        write(json.dumps(document(arguments.bundle, manifest, checks), indent=2))
    elif checks is not None:
        write("\n" + verdict(manifest, checks, width=terminal_width()))
    return 0


def verify(folder: Path, manifest: Any) -> dict[str, Any]:
    """Check files and golden vectors.

    :return: `files`: how many are right; `differences` from the golden vectors by program, or None
        if they could not be run, and then `why`.
    :raises BundleError: the first fault, with the file.
    """
    from omni_ros.bundles import Bundle, try_programs, verify_files

    verify_files(folder, manifest)
    found: dict[str, Any] = {"files": len(manifest.files) + 1, "differences": None, "why": None}
    try:
        found["differences"] = try_programs(Bundle(folder, manifest))
    except (MissingDependency, ImportError) as error:
        found["why"] = " ".join(str(error).split())
    return found


def document(folder: Path, manifest: Any, checks: dict[str, Any] | None) -> dict[str, Any]:
    """Return what `--json` prints."""
    from omni_ros.bundles import schema
    from omni_ros.bundles.manifest import FORMAT

    data = {
        "bundle": str(folder), "format": FORMAT, **schema.to_data(manifest),
        "bench": bench_results.kept(folder),
    }
    return data if checks is None else {**data, "verified": checks}


def summary(manifest: Any, *, width: int = 80) -> str:
    """Return a manifest for people: what it takes, what it gives, what it costs, where it is from.

    :param manifest: that of any family.
    """
    if manifest.family in VOICES:
        voice = importlib.import_module(VOICES[manifest.family])
        about = [paragraphs(voice.network(manifest), width)]
    else:
        about = policy(manifest, width)
    costs = [programs(manifest, width), paragraphs(provenance(manifest), width)]
    return "\n\n".join([*about, *costs])


def policy(manifest: Any, width: int) -> list[str]:
    """Return what a policy takes and gives.

    :param manifest: an omni_ros.bundles.Manifest.
    """
    return [
        paragraphs(network(manifest), width),
        format_table(("camera", "key in the checkpoint", "trained on"), cameras(manifest)),
        joints(manifest, width),
    ]


def network(manifest: Any) -> Iterable[tuple[str, str]]:
    """Yield what goes in and what comes out."""
    size, prefix, image = manifest.dimensions, manifest.prefix, manifest.image
    flow, prompt, norm = manifest.flow, manifest.tokenizer, manifest.normalisation
    marks = prefix.start_marks + prefix.end_marks
    slot = f"{size.image_tokens} + {marks} marks" if marks else f"{size.image_tokens}"
    yield "bundle", f"{manifest.name} ({manifest.family}, {', '.join(recipes(manifest))})"
    yield "actions", (
        f"{size.chunk} rows of {size.action}, {size.action_steps} of them meant to be played; "
        f"{flow.steps} flow steps"
    )
    yield "state", f"{size.state} values"
    yield "images", f"{image.width} x {image.height}, {image.resize}, in [{image.low:g}, " + (
        f"{image.high:g}]")
    yield "prompt", f"up to {prompt.max_length} tokens" + (", newline added" * prompt.newline)
    yield "prefix", (
        f"{size.prefix} tokens: {prefix.slots} slots of {slot}, the prompt{STATES[prefix.state]}; "
        f"{size.layers} layers of {size.kv_heads} x {size.head_dim} keys and values"
    )
    yield "scaling", f"state {norm.state}, actions {norm.action}"
    if manifest.conventions.aloha != "none":
        yield "aloha", f"joints adapted with the constants of {manifest.conventions.aloha}"
    if any(manifest.conventions.relative):
        joints = manifest.joints if manifest.joints != "raw" else ()
        names = [joint.name for joint in joints] or list(map(str, range(size.action)))
        apart = [name for name, relative in
                 zip(names, manifest.conventions.relative, strict=True) if not relative]
        yield "actions are", "relative to the observation's state" + (
            f", but {', '.join(apart)}" if apart else "")


#: Where the state comes in, as the line of the prefix says it.
STATES = {"prefix": ", the state", "suffix": " (the state comes before the actions)",
          "prompt": " with the state in it"}


def recipes(manifest: Any) -> list[str]:
    """Return the recipes of the programs, each once."""
    return list(dict.fromkeys(program.recipe for program in manifest.programs.values()))


def cameras(manifest: Any) -> Iterable[tuple[str, str, str]]:
    """Yield the rows of the cameras in the network's order, then the empty places."""
    renamed = {theirs: ours for ours, theirs in manifest.rename_map.items()}
    for camera in manifest.cameras:
        key = camera.key
        if key in renamed:
            key += f" (from {renamed[key]})"
        yield camera.name, key, f"{camera.width} x {camera.height}"
    for index in range(manifest.empty_cameras):
        yield f"(empty {index + 1})", "masked, after those that are present", "-"


def joints(manifest: Any, width: int) -> str:
    """Return joints and units, or what it means that there are none."""
    if manifest.joints == "raw" and manifest.state_joints == "raw":
        return paragraphs([(
            "joints", "raw: without names and units, for comparisons only; no player takes it"
        )], width)  # fmt: skip
    if manifest.joints == manifest.state_joints:
        rows = [(j.name, j.unit, "state and action") for j in manifest.joints]
    else:
        rows = [
            (j.name, j.unit, role)
            for role, names in (("action", manifest.joints), ("state", manifest.state_joints))
            for j in (() if names == "raw" else names)
        ]
    return format_table(("joint", "unit", "of"), rows)


def programs(manifest: Any, width: int) -> str:
    """Return the table of the programs and what is to be said below it."""
    rows = []
    notes = []
    own: list[str] = []
    for name, entry in manifest.programs.items():
        calls = sum(entry.delegates.values())
        size = f"{manifest.files[entry.file].bytes / MB:.1f}" if entry.file not in own else '"'
        own.append(entry.file)
        rows.append((
            name, entry.recipe, size,
            f"{entry.constants_bytes / MB:.1f}", f"{entry.workspace_bytes / MB:.1f}",
            f"{sum(entry.arenas) / MB:.1f}", str(calls), str(len(entry.leftover)),
            f"{entry.difference:.1e}",
        ))  # fmt: skip
        if entry.leftover:
            notes.append((name, f"left over: {', '.join(entry.leftover)}; these are slow"))
    memory, files = manifest.memory, manifest.files.values()
    stored = sum(manifest.files[file].bytes for file in set(own))
    head = ("program, MB", "recipe", "file", "loaded", "work", "arena", "del.", "left", "differs")
    total = (
        "all", "", f"{stored / MB:.1f}", f"{memory.constants / MB:.1f}",
        f"{memory.workspaces / MB:.1f}", f"{memory.arenas / MB:.1f}", "", "", "",
    )  # fmt: skip
    backends = sorted({b for entry in manifest.programs.values() for b in entry.delegates})
    notes += [
        ("size", f"{sum(file.bytes for file in files) / MB:.1f} MB in {len(files) + 1} files"),
        ("memory", f"{memory.total / MB:.1f} MB, inputs and outputs "
         f"({memory.inputs_outputs / MB:.1f} MB) included"),
        ("columns", "loaded: weights in memory; work: what the first runs add; del.: calls of "
         f"{', '.join(backends) or 'no delegate'}; left: operators outside; differs: from the "
         "network in PyTorch, relative to its largest value"),
        ("tolerance", f"{manifest.tolerance.same_machine:g} from the golden vectors on such a "
         f"machine, {manifest.tolerance.across_machines:g} on others"),
    ]  # fmt: skip
    table = "\n".join(line.rstrip() for line in format_table(head, [*rows, total]).splitlines())
    return table + "\n\n" + paragraphs(notes, width)


def provenance(manifest: Any) -> Iterable[tuple[str, str]]:
    """Yield where the bundle comes from."""
    origin = manifest.provenance
    made = origin.tools
    yield "checkpoint", f"sha256 {origin.checkpoint_sha256[:16]}..."
    yield "backbone", f"sha256 {(origin.backbone_sha256 or 'none')[:16]}..."
    asked = {k: v for k, v in origin.options.items() if v is not None and v is not False}
    yield "options", ", ".join(f"{key} {value}" for key, value in asked.items()) or "none"
    yield "made", (
        f"{origin.created} in {origin.minutes:.1f} min with up to "
        f"{origin.peak_memory_bytes / MB:.0f} MB of memory, "
        f"omni_ros {made.omni_ros}, torch {made.torch}, executorch {made.executorch}, Python "
        f"{made.python}"
    )
    yield "machine", origin.machine


def bench(folder: Path, *, width: int = 80) -> str:
    """Return the time of each stage as it was measured last, or how to measure it."""
    result = bench_results.kept(folder)
    if result is None:
        return paragraphs([("bench", "not measured yet; omni bench policy BUNDLE does")], width)
    table = format_table(("stage", "ms a chunk", "share"), bench_results.rows(result))
    return f"{table}\n\n{paragraphs(bench_results.facts(result), width)}"


def verdict(manifest: Any, checks: dict[str, Any], width: int) -> str:
    """Return what --verify found where nothing is at fault."""
    lines = [("verified", f"{checks['files']} files have the right size and SHA-256")]
    if checks["differences"] is None:
        lines.append(("NOT RUN", f"golden vectors: {checks['why']}"))
    else:
        found = (f"{name} {value:.1e}" for name, value in checks["differences"].items())
        lines.append(("", f"golden vectors differ by: {', '.join(found)}"))
    return paragraphs(lines, width)


def paragraphs(entries: Iterable[tuple[str, str]], width: int) -> str:
    """Return subjects with their text beside them, wrapped."""
    entries = list(entries)
    margin = max(10, *(len(subject) for subject, _ in entries)) + 2
    lines = []
    for subject, text in entries:
        body = textwrap.wrap(text, max(20, width - margin), break_on_hyphens=False)
        lines += [f"{subject if i == 0 else '':{margin}}{line}" for i, line in enumerate(body)]
    return "\n".join(lines)
