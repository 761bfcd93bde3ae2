# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a program answers, run as a robot runs it: in a process without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from omni_ros.bundles.child import confine, run_child, telling
from omni_ros.bundles.errors import BundleError
from omni_ros.programs import Program, native, set_threads, zeros


def answer(
    path: Path, given: Path, answered: Path, outputs: Sequence[str], *, method: str = "forward",
    threads: int = 1,
) -> dict[str, np.ndarray]:
    """Return the outputs of a program by name.

    :param given: npz with the inputs, named by their number. :param answered: where to write an npz
        of the outputs likewise.
    :raises BundleError: it does not load or run; the file is named.
    """
    native.library()
    outcome = run_child(__name__, (path, method, given, answered, threads), 3600.0)
    for event in outcome.events:
        if "error" in event:
            raise BundleError(event["error"])
    if outcome.status != 0 or not answered.is_file():
        raise BundleError(f"{path}: its first load and run {outcome.why()}")
    with np.load(answered) as stored:
        return {name: stored[str(index)] for index, name in enumerate(outputs)}


def main(path: str, method: str, given: str, made: str, threads: str, *, parent: int) -> None:
    """Be the child."""
    confine(parent)
    with telling() as tell:
        try:
            set_threads(int(threads))
            program = Program(path, method)
            with np.load(given) as stored:
                for index in range(len(program.inputs)):
                    values = stored[str(index)]
                    array = zeros(values.shape, values.dtype)
                    array[...] = values
                    program.bind(index, array)
            program.run()
            results = {str(i): program.output(i) for i in range(len(program.outputs))}
            np.savez(made, **results)
        except (ValueError, OSError, KeyError) as error:
            tell(error=" ".join(str(error).split()))
