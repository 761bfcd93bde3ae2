# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Load and run all methods of a file as a robot does: their memory and what they answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from omni_ros.bundles.child import confine, run_child, telling
from omni_ros.bundles.errors import BundleError
from omni_ros.programs import Program, native, set_threads, zeros

#: Enough for every buffer to have been touched.
RUNS = 3


@dataclass(frozen=True)
class Taken:
    """Bytes that a method added to what was loaded of its file before."""

    constants_bytes: int
    workspace_bytes: int


def answer_methods(
    path: Path, methods: Sequence[str], work: Path, names: Mapping[str, Sequence[str]], *,
    threads: int, share: bool,
) -> dict[str, tuple[dict[str, np.ndarray], Taken]]:
    """Return outputs by name and memory of each method, all of them loaded beside each other.

    :param work: has METHOD.given.npz, inputs by number; METHOD.answered.npz are put beside them.
    :param names: of the outputs of each method. :param share: load them with their weights shared.
    :raises BundleError: it does not load or run; the file is named.
    """
    native.library()
    outcome = run_child(__name__, (path, json.dumps(list(methods)), work, threads, int(share)),
                        3600.0)
    found: dict[str, Taken] = {}
    for event in outcome.events:
        if "error" in event:
            raise BundleError(event["error"])
        found[event["method"]] = Taken(event["constants"], event["workspace"])
    if outcome.status != 0 or set(found) != set(methods):
        raise BundleError(f"{path}: its first load and run {outcome.why()}")
    made = {}
    for method in methods:
        with np.load(work / f"{method}.answered.npz") as stored:
            values = {name: stored[str(index)] for index, name in enumerate(names[method])}
        made[method] = (values, found[method])
    return made


def main(
    path: str, methods: str, work: str, threads: str, share: str, *, parent: int
) -> None:
    """Be the child."""
    confine(parent)
    with telling() as tell:
        try:
            set_threads(int(threads))
            kept = []
            for method in json.loads(methods):
                with np.load(Path(work) / f"{method}.given.npz") as stored:
                    given = {int(index): stored[index] for index in stored.files}
                before = resident()
                program = Program(path, method, share_weights=share == "1")
                kept.append(program)
                loaded = resident()
                for index, values in given.items():
                    array = zeros(values.shape, values.dtype)
                    array[...] = values
                    program.bind(index, array)
                bound = resident()
                for _ in range(RUNS):
                    program.run()
                tell(method=method, constants=max(0, loaded - before - sum(program.arenas)),
                     workspace=max(0, resident() - bound))
                results = {str(i): program.output(i) for i in range(len(program.outputs))}
                np.savez(Path(work) / f"{method}.answered.npz", **results)
        except (ValueError, OSError, KeyError) as error:
            tell(error=" ".join(str(error).split()))


def resident() -> int:
    """Return the resident bytes of this process."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
