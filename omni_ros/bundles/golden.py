# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs of a program and what it answered where it was exported."""

from __future__ import annotations

import platform
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from omni_ros.bundles.errors import BundleError
from omni_ros.bundles.layout import Manifest, ProgramEntry, Tensor
from omni_ros.programs import Program, zeros
from omni_ros.telemetry import machine


def this_machine() -> str:
    """Return a line that is equal on machines whose kernels should agree bit for bit."""
    features = " ".join(machine.cpu_features())
    return " ".join(f"{platform.machine()} {machine.cpu_model()} {features}".split())


def tolerance(manifest: Manifest) -> float:
    """Return the tolerance that holds here: the tighter one on a machine like the exporter's."""
    same = manifest.provenance.machine == this_machine()
    return manifest.tolerance.same_machine if same else manifest.tolerance.across_machines


def write_golden(
    path: Path, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
) -> None:
    """Write a golden file: npz with `inputs.NAME` and `outputs.NAME`."""
    arrays = {f"inputs.{name}": array for name, array in inputs.items()}
    arrays |= {f"outputs.{name}": array for name, array in outputs.items()}
    np.savez_compressed(path, **arrays)


def read_golden(
    path: Path, entry: ProgramEntry
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Read a golden file as (inputs, outputs) by name.

    :raises BundleError: it cannot be read, or holds other arrays than the program has.
    """
    wanted = {f"inputs.{tensor.name}": tensor for tensor in entry.inputs}
    wanted |= {f"outputs.{tensor.name}": tensor for tensor in entry.outputs}
    arrays = {}
    try:
        with np.load(path, allow_pickle=False) as stored:
            if set(stored.files) != set(wanted):
                raise BundleError(
                    f"{path}: holds {_some(stored.files)}, expected {_some(wanted)}"
                )
            for key, tensor in wanted.items():
                arrays[key] = _check_array(path, key, stored[key], tensor)
    except BundleError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, KeyError,
            NotImplementedError, RuntimeError, TypeError, AttributeError) as error:  # fmt: skip
        raise BundleError(f"{path}: is no readable npz file ({_line(error)})") from error
    inputs = {tensor.name: arrays[f"inputs.{tensor.name}"] for tensor in entry.inputs}
    outputs = {tensor.name: arrays[f"outputs.{tensor.name}"] for tensor in entry.outputs}
    return inputs, outputs


def check_golden(program: Program, entry: ProgramEntry, path: Path, limit: float) -> float:
    """Run a program on its golden inputs and compare.

    :param limit: the largest difference allowed, relative to max(1, largest golden value).
    :return: the largest such difference.
    :raises BundleError: an output differs by more, with its name and both numbers.
    """
    inputs, outputs = read_golden(path, entry)
    for name, values in inputs.items():
        array = zeros(values.shape, values.dtype)
        array[...] = values
        program.bind(name, array)
    program.run()
    worst = 0.0
    for name, wanted in outputs.items():
        # float64 holds all that an error in float32 or an integer can show.
        wanted = wanted.astype(np.float64)
        difference = np.abs(program.output(name).astype(np.float64) - wanted).max()
        error = float(difference / max(1.0, np.abs(wanted).max()))
        if not error <= limit:
            raise BundleError(
                f"{program.path}: output {name} differs from the golden vector in {path.name} by "
                f"{error:.3g}, allowed is {limit:.3g}; export the bundle again"
            )
        worst = max(worst, error)
    return worst


def _check_array(path: Path, key: str, array: np.ndarray, tensor: Tensor) -> np.ndarray:
    if array.dtype != np.dtype(tensor.dtype) or array.shape != tensor.shape:
        raise BundleError(
            f"{path}: {key} is {array.dtype} {list(array.shape)}, expected {tensor.dtype} "
            f"{list(tensor.shape)}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BundleError(f"{path}: {key} has values that are not finite")
    return array


def _some(names: object) -> str:
    known = sorted(names)  # type: ignore[call-overload]
    return ", ".join(known[:6]) + (f" and {len(known) - 6} more" if len(known) > 6 else "")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
