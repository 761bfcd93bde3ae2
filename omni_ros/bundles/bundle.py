# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A bundle whose files were verified, and its programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omni_ros.bundles.errors import BundleError, short
from omni_ros.bundles.layout import Manifest, ProgramEntry, Tensor
from omni_ros.programs import Program, ProgramError, TensorSpec

#: Recipes with fixed ranges of activations: XNNPACK packs those with the weights, and a method that
#: is given what was packed for another one computes nonsense, or crashes.
OWN_WEIGHTS = ("conv8",)


@dataclass(frozen=True)
class Bundle:
    """A bundle whose files are what its manifest says.

    :param root: its folder.
    :param manifest: its bundle.yaml.
    """

    root: Path
    manifest: Manifest

    def path(self, file: str) -> Path:
        """Return the path of a file of the bundle."""
        if file not in self.manifest.files:
            raise BundleError(f"{self.root}: has no file {short(file)}")
        return self.root / file

    def load(self, name: str) -> Program:
        """Load a program, with the manifest's names for its inputs and outputs.

        Programs that are methods of one file share their weights in memory.

        :raises BundleError: there is none of this name, it does not load, or it is another one than
            the manifest describes.
        """
        entry = self.manifest.programs.get(name)
        if entry is None:
            known = ", ".join(self.manifest.programs)
            raise BundleError(f"{self.root}: has no program {short(name)}; it has: {known}")
        share = shares_weights(self.manifest, entry)
        return load_program(self.path(entry.file), entry, share_weights=share)


def shares_weights(manifest: Manifest, entry: ProgramEntry) -> bool:
    """Return whether a program has its weights in common with other methods of its file."""
    methods = sum(other.file == entry.file for other in manifest.programs.values())
    return methods > 1 and entry.recipe not in OWN_WEIGHTS


def load_program(path: Path, entry: ProgramEntry, *, share_weights: bool = False) -> Program:
    """Load a file and compare it with its entry in the manifest.

    :param share_weights: see :class:`omni_ros.programs.Program`.

    :raises BundleError: see :meth:`Bundle.load`.
    """
    try:
        program = Program(
            path,
            entry.method,
            inputs=[tensor.name for tensor in entry.inputs],
            outputs=[tensor.name for tensor in entry.outputs],
            share_weights=share_weights,
        )
    except ProgramError as error:
        raise BundleError(str(error)) from error
    _check_tensors(path, "inputs", program.inputs, entry.inputs)
    _check_tensors(path, "outputs", program.outputs, entry.outputs)
    if sum(program.arenas) != sum(entry.arenas):
        raise BundleError(
            f"{path}: plans arenas of {sum(program.arenas)} bytes, the manifest says "
            f"{sum(entry.arenas)}"
        )
    if set(program.backends) != set(entry.delegates):
        raise BundleError(
            f"{path}: uses the delegates {', '.join(program.backends) or 'none'}, the manifest "
            f"says {', '.join(entry.delegates) or 'none'}"
        )
    return program


def _check_tensors(
    path: Path, kind: str, found: tuple[TensorSpec, ...], wanted: tuple[Tensor, ...]
) -> None:
    for index, (spec, tensor) in enumerate(zip(found, wanted, strict=True)):
        if (spec.dtype, spec.shape) != (tensor.dtype, tensor.shape):
            raise BundleError(
                f"{path}: {kind}[{index}] is {spec.dtype} {list(spec.shape)}, the manifest says "
                f"{tensor.name}: {tensor.dtype} {list(tensor.shape)}"
            )
