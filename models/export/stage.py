# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One stage of a network to one file of a bundle, checked against the network it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from omni_ros.bundles import BundleError, layout, measure, write_golden

from .answers import answer
from .lower import LoweringError, TensorSpec, require_one_delegate
from .lowering import lower_stage, read
from .memory import Peak

#: How far a program may be from the network in PyTorch, relative to max(1, largest value): what is
#: beyond it is a fault of the export, not of the arithmetic.
LIMITS = {"fp32": 1e-4, "int8": 0.2, "int4": 0.5}
#: Stages that have 4-bit weights in the recipe int4: where most weights are; others are int8.
INT4_STAGES = ("fusion_backbone",)


@dataclass(frozen=True)
class Source:
    """Where stages come from: a checkpoint, its family, and how it is read."""

    family: str
    folder: Path
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Settings:
    """How stages are exported. `isolate`: lower in processes of their own, see `lowering`."""

    recipe: str = "fp32"
    allow_portable: bool = False
    threads: int = 1
    isolate: bool = True


def export_stage(
    source: Source, name: str, folder: Path, work: Path, settings: Settings,
    say: Callable[[str], None], peak: Peak,
) -> layout.ProgramEntry:
    """Write NAME.pte and golden/NAME.npz into a folder and return what the manifest says of it.

    :param work: a folder for what is only needed meanwhile.
    :raises LoweringError: it is not one delegate, or answers something else than the network.
    """
    recipe, path = settings.recipe, folder / f"{name}.pte"
    if recipe == "int4" and name not in INT4_STAGES:
        recipe = "int8"
    say(f"{name}: lowering ({recipe}) ...")
    made = lower_stage(
        source.family, source.folder, source.options, name, path, work, recipe, settings.threads,
        isolate=settings.isolate,
    )
    peak.of_children()
    if not settings.allow_portable:
        require_one_delegate(name, recipe, made.delegates, made.leftover)
    say(
        f"{name}: {path.stat().st_size / 1e6:.1f} MB; read in {made.reading_s:.1f} s, lowered in "
        f"{made.lowering_s:.1f} s"
    )

    started = time.monotonic()
    given = read(work / f"{name}.given.npz", made.inputs)
    wanted = read(work / f"{name}.wanted.npz", made.outputs)
    try:
        footprint = measure(path, made.method, threads=settings.threads)
        answered = answer(
            path, work / f"{name}.given.npz", work / f"{name}.answered.npz", made.outputs,
            method=made.method, threads=settings.threads,
        )
    except BundleError as error:
        raise LoweringError(f"{name} ({recipe}) does not run: {error}") from error
    peak.of_children()
    difference = furthest(answered, wanted)
    if not difference <= LIMITS[recipe]:
        raise LoweringError(
            f"{name} ({recipe}) answers with a difference of {difference:.3g} from the network in "
            f"PyTorch, relative to its largest value: expected {LIMITS[recipe]:g} or less; this "
            "combination of versions lowers it wrongly, or the weights do not stand the recipe"
        )
    write_golden(folder / "golden" / path.with_suffix(".npz").name, given, answered)
    say(
        f"{name}: run and compared in {time.monotonic() - started:.1f} s, difference "
        f"{difference:.1e}"
    )
    return layout.ProgramEntry(
        file=path.name, method=made.method, recipe=recipe,
        inputs=tensors(made.inputs, made.input_specs),
        outputs=tensors(made.outputs, made.output_specs),
        arenas=made.arenas, constants_bytes=footprint.constants_bytes,
        workspace_bytes=footprint.workspace_bytes, delegates=made.delegates,
        leftover=tuple(sorted(set(made.leftover))), difference=difference,
    )


def tensors(names: tuple[str, ...], specs: tuple[TensorSpec, ...]) -> tuple[layout.Tensor, ...]:
    """Return the manifest's description of inputs or outputs."""
    return tuple(
        layout.Tensor(name, spec.dtype, spec.shape) for name, spec in zip(names, specs, strict=True)
    )


def furthest(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> float:
    """Return the largest difference, relative to max(1, largest value) of each output."""
    worst = 0.0
    for name, values in wanted.items():
        exact = values.astype(np.float64)
        error = np.abs(found[name].astype(np.float64) - exact).max()
        relative = float(error / max(1.0, np.abs(exact).max()))
        worst = max(worst, relative) if np.isfinite(relative) else float("inf")
    return worst
