# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The latest `omni bench policy` of each bundle, kept for `omni inspect`.

In the user's cache, not in the bundle: a bundle is refused if it holds a file that its manifest
does not name, it may lie where nobody may write, and a figure is of a machine, which a copy of the
bundle leaves. The file's name is the manifest's SHA-256, so a bundle that was exported again has no
figures until it is measured, and one that was moved or copied keeps them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omni_ros.bundles import manifest_hash, this_machine
from omni_ros.programs.build import cache_folder

STAGES = ("preprocess", "vision_encoder", "fusion_backbone", "action_head", "postprocess")


def folder() -> Path:
    """Return where results are kept; OMNI_ROS_CACHE or XDG_CACHE_HOME move it."""
    return cache_folder() / "bench"


def keep(bundle: Path, document: dict[str, Any]) -> Path:
    """Keep a result in place of the one before; return its file.

    :param document: of `bench_policy.measure`.
    :raises OSError: it cannot be written.
    """
    side = document["sides"]["bundle"]
    result = {
        "bench": "policy", "of_machine": this_machine(), "time": document["provenance"]["time"],
        **{key: document[key] for key in ("chunks", "threads", "cameras", "cameras_of_bundle")},
        **{key: side[key] for key in ("p50", "p99", "max", "stages")},
        "provenance": document["provenance"],
    }
    path = folder() / f"{manifest_hash(bundle)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{os.getpid()}")
    made.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    os.replace(made, path)
    return path


def kept(bundle: Path) -> dict[str, Any] | None:
    """Return the latest result of a bundle; None if there is none that can be read."""
    try:
        path = folder() / f"{manifest_hash(bundle)}.json"
        result = json.loads(path.read_text(encoding="utf-8"))
        list(facts(result)), list(rows(result))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return result


def facts(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was measured, when, and on which machine."""
    yield "bench", (
        f"p50 {1e3 * result['p50']:.1f} ms a chunk, p99 {1e3 * result['p99']:.1f} ms, of "
        f"{result['chunks']} chunks with {result['threads']} threads and {result['cameras']} of "
        f"{result['cameras_of_bundle']} cameras, {result['time']}"
    )
    if result["of_machine"] == this_machine():
        yield "", f"on this kind of machine: {result['provenance']['cpu']}"
    else:
        yield "NOT HERE", (
            f"measured on another machine: {result['of_machine'][:60].rstrip()}...; run omni bench "
            "policy here"
        )


def rows(result: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the median of each stage: name, milliseconds, share of all of them."""
    stages = {name: result["stages"][name] for name in STAGES if name in result["stages"]}
    total = sum(stages.values())
    for name, seconds in stages.items():
        yield name, f"{1e3 * seconds:.1f}", f"{100 * seconds / total:.0f} %"
