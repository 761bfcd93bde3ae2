# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One stage of a network to one file of a bundle, checked against the network it was."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from omni_ros.bundles import BundleError, layout, measure, write_golden

from .answers import answer
from .lower import LoweredProgram, LoweringError, lower
from .memory import Peak, release

#: How far a program may be from the network in PyTorch, relative to max(1, largest value): what is
#: beyond it is a fault of the export, not of the arithmetic.
LIMITS = {"fp32": 1e-4, "int8": 0.2}


@dataclass(frozen=True)
class Options:
    """How stages are exported."""

    recipe: str = "fp32"
    allow_portable: bool = False
    threads: int = 1


@dataclass(frozen=True)
class Stage:
    """A stage with its weights and what to try it with.

    `examples` and `golden` are distinct contiguous tensors, in order of the inputs.
    """

    name: str
    module: nn.Module
    inputs: Sequence[str]
    outputs: Sequence[str]
    examples: tuple[torch.Tensor, ...]
    golden: tuple[torch.Tensor, ...]


def export_stage(
    load: Callable[[], Stage], folder: Path, options: Options, say: Callable[[str], None],
    peak: Peak,
) -> layout.ProgramEntry:
    """Write NAME.pte and golden/NAME.npz into a folder and return what the manifest says of it.

    :param load: makes the stage; it is let go as soon as it is lowered.
    :raises LoweringError: it is not one delegate, or answers something else than the network.
    """
    started = time.monotonic()
    stage = load()
    name, golden = stage.name, stage.golden
    say(f"{name}: weights read in {time.monotonic() - started:.1f} s")
    with torch.no_grad():
        expected = stage.module(*golden)
    expected = expected if isinstance(expected, tuple) else (expected,)
    wanted = {key: array(t) for key, t in zip(stage.outputs, expected, strict=True)}
    given = {key: array(t) for key, t in zip(stage.inputs, golden, strict=True)}

    started = time.monotonic()
    program = lower(stage.module, stage.examples, options.recipe)
    inputs, outputs = stage.inputs, stage.outputs
    del stage, expected
    if not options.allow_portable:
        program.require_one_delegate(name)
    path = folder / f"{name}.pte"
    path.write_bytes(program.data)
    facts = keep_facts(program)
    del program
    release()
    say(f"{name}: lowered to {size(path)} ({options.recipe}) in {time.monotonic() - started:.1f} s")

    started = time.monotonic()
    try:
        footprint = measure(path, facts.method, threads=options.threads)
        answered = answer(path, given, outputs, method=facts.method, threads=options.threads)
    except BundleError as error:
        raise LoweringError(f"{name} ({options.recipe}) does not run: {error}") from error
    peak.of_children()
    difference = furthest(answered, wanted)
    limit = LIMITS[options.recipe]
    if not difference <= limit:
        raise LoweringError(
            f"{name} ({options.recipe}) answers with a difference of {difference:.3g} from the "
            f"network in PyTorch, relative to its largest value: expected {limit:g} or less; "
            "this combination of versions lowers it wrongly, or the weights do not stand the recipe"
        )
    write_golden(folder / "golden" / f"{name}.npz", given, answered)
    say(
        f"{name}: run and compared in {time.monotonic() - started:.1f} s, difference "
        f"{difference:.1e}"
    )
    return layout.ProgramEntry(
        file=path.name, method=facts.method, recipe=options.recipe,
        inputs=tensors(inputs, facts.inputs), outputs=tensors(outputs, facts.outputs),
        arenas=facts.arenas, constants_bytes=footprint.constants_bytes,
        workspace_bytes=footprint.workspace_bytes, delegates=facts.delegates,
        leftover=tuple(sorted(set(facts.leftover))), difference=difference,
    )


def keep_facts(program: LoweredProgram) -> LoweredProgram:
    """Return a program's description without its bytes."""
    return dataclasses.replace(program, data=b"")


def tensors(names, specs) -> tuple[layout.Tensor, ...]:
    return tuple(
        layout.Tensor(name, spec.dtype, spec.shape) for name, spec in zip(names, specs, strict=True)
    )


def array(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor's values, apart from its memory."""
    return np.array(tensor.detach().numpy(), order="C")


def furthest(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """Return the largest difference, relative to max(1, largest value) of each output."""
    worst = 0.0
    for name, values in wanted.items():
        exact = values.astype(np.float64)
        error = np.abs(found[name].astype(np.float64) - exact).max()
        relative = float(error / max(1.0, np.abs(exact).max()))
        worst = max(worst, relative) if np.isfinite(relative) else float("inf")
    return worst


def size(path: Path) -> str:
    """Return a file's size for people."""
    return f"{path.stat().st_size / 1e6:.1f} MB"
