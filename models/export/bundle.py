# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint to a bundle: programs, their golden vectors, and all that running them needs.

Stage by stage: only one stage's weights are in memory at a time (see `lowering`). The bundle
appears under its name when everything in it was checked, or not at all.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

import omni_ros
from omni_ros.bundles import file_entry, layout, this_machine, verify_files, write_manifest
from omni_ros.bundles.kinds import kind_of
from omni_ros.telemetry.provenance import package_version

from .families import FAMILIES, family_class, family_of
from .folder import check_target, whole_folder
from .joints import parse_joints
from .lower import RECIPES
from .memory import Peak
from .stage import Settings, Source, export_stage

#: fp32: how far a program may be from its own golden vectors. Kernels of another CPU sum in another
#: order: 1e-6 was seen between AVX-512 and AVX2.
FP32_TOLERANCE = layout.Tolerance(1e-5, 1e-4)
#: int8, on a machine like the exporter's: the same kernels gave the same bits with 1 and 2 threads.
INT8_SAME_MACHINE = 1e-4


def export_checkpoint(
    checkpoint: Path | str,
    out: Path | str,
    *,
    joints: Any = None,
    backbone: Path | str | None = None,
    base: Path | str | None = None,
    recipe: str = "fp32",
    lerobot_compat: str = "new",
    dataset: str | None = None,
    statistics: Path | str | Mapping[str, Any] | None = None,
    cameras: int | Sequence[str] | None = None,
    aloha: str | None = None,
    relative: str | None = None,
    vision_heads: int | None = None,
    name: str | None = None,
    threads: int = 1,
    allow_portable: bool = False,
    force: bool = False,
    isolate: bool = True,
    progress: Callable[[str], None] | None = None,
) -> layout.Manifest:
    """Write a bundle and return its manifest.

    :param joints: see :func:`.joints.parse_joints`; "raw" for a bundle that moves no robot. None
        for a voice.
    :param backbone, base, dataset, statistics: see the family's load_checkpoint; `lerobot_compat`
        is its `compat`.
    :param cameras: those to have slots for, how many from the first on or which by name; all of the
        checkpoint's if None. A masked slot is computed like any other, so a bundle for the cameras
        that a robot has is faster; its actions are the same.
    :param aloha, relative, vision_heads: of a π0 or π0.5, see `models.pi0.load`.
    :param threads: of the trial runs; a program's workspace depends on them.
    :param allow_portable: take programs that are not one delegate; the manifest says so.
    :param force: replace a bundle that is there already.
    :param isolate: lower each stage in a process of its own, which needs less memory; without it
        all is done here, which saves some seconds a stage.
    :param progress: called with a line of text now and then.
    :raises ValueError: an option, or the checkpoint, can not be taken as it is.
    :raises LoweringError: the network does not become what it should.
    """
    say = progress or (lambda line: None)
    source, out = Path(checkpoint), Path(out)
    if recipe not in RECIPES:
        raise ValueError(f"recipe is {recipe!r}: expected one of {', '.join(RECIPES)}")
    family = family_of(source)
    if recipe not in FAMILIES[family].recipes:
        raise ValueError(f"recipe is {recipe!r}: a {family} is exported as "
                         f"{', '.join(FAMILIES[family].recipes)}")
    moves = FAMILIES[family].moves
    if not moves and joints is not None:
        raise ValueError(f"joints are given, and a {family} moves none: leave them out")
    named = parse_joints(joints) if moves else None
    check_target(out, force=force)
    started, peak = time.monotonic(), Peak()
    options = {
        "backbone": backbone, "base": base, "dataset": dataset, "statistics": statistics,
        "compat": lerobot_compat,
        "cameras": cameras if cameras is None or isinstance(cameras, int) else list(cameras),
        "aloha": aloha, "relative": relative, "vision_heads": vision_heads,
    }
    export = family_class(family)(source, options)
    own: dict[str, Any] = {}
    if named is not None:
        own = export.named(*named.of_width(*export.widths))
    say(f"{family} checkpoint read in {time.monotonic() - started:.1f} s")
    origin = Source(family, source, options)
    settings = Settings(recipe, allow_portable, threads, isolate)
    with whole_folder(out, force=force) as folder:
        (folder / "golden").mkdir()
        # Golden vectors on their way from one process to the next.
        work = folder / "work"
        work.mkdir()
        programs = {
            stage: export_stage(origin, stage, folder, work, settings, say, peak)
            for stage in export.stages
        }
        shutil.rmtree(work)
        export.write_files(folder)
        checkpoint_hash, backbone_hash = (
            digest(files) if files else None for files in export.sources
        )
        sections = export.sections()
        manifest = kind_of(family).manifest(
            **sections, **own,
            name=name or out.name.removesuffix(".bundle"),
            programs=programs, memory=layout.Memory.of(programs),
            files={
                path.relative_to(folder).as_posix(): file_entry(path)
                for path in sorted(folder.rglob("*")) if path.is_file()
            },
            golden={stage: f"golden/{stage}.npz" for stage in programs},
            tolerance=tolerance(recipe, programs),
            provenance=layout.Provenance(
                checkpoint_sha256=checkpoint_hash, backbone_sha256=backbone_hash,
                options={
                    "recipe": recipe, "lerobot_compat": lerobot_compat if moves else None,
                    "dataset": dataset,
                    "statistics": describe(statistics), "allow_portable": allow_portable,
                    "threads": threads, "aloha": aloha, "relative": relative,
                    "cameras": None if cameras is None else ",".join(
                        camera.name for camera in sections["cameras"]
                    ),
                },
                tools=tools(), machine=this_machine(),
                created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
                minutes=round((time.monotonic() - started) / 60, 3), peak_memory_bytes=peak.bytes,
            ),
        )
        write_manifest(folder, manifest)
        verify_files(folder)
    total = sum(entry.bytes for entry in manifest.files.values())
    say(f"{out}: {total / 1e6:.1f} MB in {time.monotonic() - started:.1f} s")
    return manifest


def tolerance(recipe: str, programs: Mapping[str, layout.ProgramEntry]) -> layout.Tolerance:
    """Return how far programs may be from their golden vectors.

    Dynamic quantisation turns a last bit into a step of a whole level, so another CPU's kernels
    give another rounding of the same network. Each is about as far from the network in float32 as
    the one measured here, so two of them are at most twice that apart. (Between AVX-512 and AVX2
    it was up to 0.6 times what was measured.)
    """
    if recipe == "fp32":
        return FP32_TOLERANCE
    furthest = max(program.difference for program in programs.values())
    return layout.Tolerance(INT8_SAME_MACHINE, min(0.5, max(2 * furthest, 1e-3)))


def digest(files: list[Path]) -> str:
    """Return one SHA-256 for several files: of the lines "SHA-256  NAME", sorted by name."""
    lines = sorted(f"{path.name}\0{file_entry(path).sha256}" for path in files)
    text = "".join("{1}  {0}\n".format(*line.split("\0")) for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()


def describe(statistics: Path | str | Mapping[str, Any] | None) -> str | None:
    """Return what stands in the manifest for statistics that were given."""
    if statistics is None or isinstance(statistics, str) and statistics == "identity":
        return statistics
    return "given" if isinstance(statistics, Mapping) else f"file {Path(statistics).name}"


def tools() -> layout.Tools:
    """Return the versions of what makes a bundle."""
    return layout.Tools(
        torch=str(torch.__version__), executorch=package_version("executorch") or "unknown",
        python=platform.python_version(), omni_ros=omni_ros.__version__,
    )
