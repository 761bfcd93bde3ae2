# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read one stage, ask the network itself for golden vectors, and lower it: in a process of its own.

Lowering leaves copies of the weights behind in PyTorch's caches. A process that ends gives back all
of it, so an export needs the memory of its largest stage and not of all that came before.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from omni_ros.bundles.child import confine, run_child, telling

from ..common.errors import CheckpointError
from .families import family_class
from .lower import LoweringError, TensorSpec, lower

TIMEOUT_S = 6 * 3600.0
ERRORS = {"CheckpointError": CheckpointError, "LoweringError": LoweringError,
          "ValueError": ValueError, "MemoryError": MemoryError}


@dataclass(frozen=True)
class Lowered:
    """What became of a stage. Times are seconds.

    `given` and `wanted` of the golden vector lie in WORK/NAME.given.npz and WORK/NAME.wanted.npz,
    in order of inputs and outputs.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_specs: tuple[TensorSpec, ...]
    output_specs: tuple[TensorSpec, ...]
    method: str
    delegates: dict[str, int]
    leftover: tuple[str, ...]
    arenas: tuple[int, ...]
    reading_s: float
    lowering_s: float


def lower_stage(
    family: str, source: Path, options: Mapping[str, Any], stage: str, path: Path, work: Path,
    recipe: str, threads: int, *, isolate: bool = True,
) -> Lowered:
    """Write a stage's program to `path` and its golden vector to the folder `work`.

    :param family: a name in `families.FAMILIES`; `source`, `options` are what its class takes.
    :param isolate: use a process of its own, as above.
    :raises CheckpointError, LoweringError: as `lower` and the family do.
    """
    if not isolate:
        return do(family, source, options, stage, path, work, recipe, threads)
    arguments = json.dumps([family, str(source), dict(options), stage, str(path), str(work),
                            recipe, threads], default=plain)
    outcome = run_child(__name__, (arguments,), TIMEOUT_S)
    for event in outcome.events:
        if event.get("errno"):
            raise OSError(event["errno"], event["error"], str(path))
        if "error" in event:
            raise ERRORS.get(event["kind"], RuntimeError)(event["error"])
        if outcome.status == 0:
            specs = {
                key: tuple(TensorSpec(s["dtype"], tuple(s["shape"])) for s in event[key])
                for key in ("input_specs", "output_specs")
            }
            lists = {key: tuple(event[key]) for key in ("inputs", "outputs", "leftover", "arenas")}
            return Lowered(**{**event, **specs, **lists})
    memory = "; if it was killed for memory, free some, or export on a larger machine"
    raise LoweringError(
        f"{stage}: the process that lowered it {outcome.why()}"
        f"{memory if outcome.status == -9 else ''}"
    )


def main(arguments: str, *, parent: int) -> None:
    """Be the child."""
    confine(parent)
    with telling() as tell:
        family, source, options, stage, path, work, recipe, threads = json.loads(arguments)
        torch.set_num_threads(threads)
        try:
            made = do(family, Path(source), options, stage, Path(path), Path(work), recipe, threads)
        except (ValueError, LoweringError, MemoryError) as error:
            kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__name__ in ERRORS]
            tell(error=str(error) or "not enough memory", kind=kinds[0])
            return
        except OSError as error:  # a full disk
            tell(error=error.strerror or str(error), errno=error.errno)
            return
        tell(**dataclasses.asdict(made))


def do(
    family: str, source: Path, options: Mapping[str, Any], stage: str, path: Path, work: Path,
    recipe: str, threads: int,
) -> Lowered:
    started = time.monotonic()
    export = family_class(family)(source, options)
    module, model = export.load(stage)
    inputs, outputs = export.names(model, stage)
    examples, golden = export.examples(model, stage), export.golden(model, stage)
    reading_s = time.monotonic() - started
    with torch.no_grad():
        expected = module(*golden)
    expected = expected if isinstance(expected, tuple) else (expected,)
    save(work / f"{stage}.given.npz", golden)
    save(work / f"{stage}.wanted.npz", expected)
    del export, expected, golden
    started = time.monotonic()
    program = lower(module, examples, recipe, path=path, consume=True)
    return Lowered(
        tuple(inputs), tuple(outputs), program.inputs, program.outputs, program.method,
        program.delegates, program.leftover, program.arenas, reading_s,
        time.monotonic() - started,
    )


def plain(value: Any) -> Any:
    """Return what JSON has for a path or an array."""
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def save(path: Path, tensors: tuple[torch.Tensor, ...]) -> None:
    """Write tensors in order."""
    np.savez(path, **{str(i): t.detach().numpy() for i, t in enumerate(tensors)})


def read(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Read what `save` wrote, by name."""
    with np.load(path) as stored:
        return {name: stored[str(index)] for index, name in enumerate(names)}
