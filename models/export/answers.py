# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a program answers, run as a robot runs it: in a process without PyTorch."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from omni_ros.bundles.child import confine, run_child, telling
from omni_ros.bundles.errors import BundleError
from omni_ros.programs import Program, native, set_threads, zeros


def answer(
    path: Path, inputs: Mapping[str, np.ndarray], outputs: Sequence[str], *,
    method: str = "forward", threads: int = 1,
) -> dict[str, np.ndarray]:
    """Return the outputs of a program, by name, for inputs given in its order.

    :raises BundleError: it does not load or run; the file is named.
    """
    native.library()
    with tempfile.TemporaryDirectory(prefix="omni_export_") as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(given, **dict(zip(map(str, range(len(inputs))), inputs.values(), strict=True)))
        outcome = run_child(__name__, (path, method, given, made, threads), 3600.0)
        for event in outcome.events:
            if "error" in event:
                raise BundleError(event["error"])
        if outcome.status != 0 or not made.is_file():
            raise BundleError(f"{path}: its first load and run {outcome.why()}")
        with np.load(made) as stored:
            return {name: stored[str(index)] for index, name in enumerate(outputs)}


def main(path: str, method: str, given: str, made: str, threads: str, *, parent: int) -> None:
    """Be the child."""
    confine(parent)
    with telling() as tell:
        try:
            set_threads(int(threads))
            program = Program(path, method)
            with np.load(given) as stored:
                for index, name in enumerate(stored.files):
                    array = zeros(stored[name].shape, stored[name].dtype)
                    array[...] = stored[name]
                    program.bind(index, array)
            program.run()
            results = {str(i): program.output(i) for i in range(len(program.outputs))}
            np.savez(made, **results)
        except (ValueError, OSError) as error:
            tell(error=" ".join(str(error).split()))
