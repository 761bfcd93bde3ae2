# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of bundle.yaml, format 1, as dataclasses: the order of fields is the order of keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Union

import numpy as np

from omni_ros.bundles.schema import number, one_of, size
from omni_ros.programs.tensors import DTYPES

_MODES = ("IDENTITY", "MEAN_STD", "MIN_MAX", "QUANTILES", "QUANTILE10")


@dataclass(frozen=True)
class Dimensions:
    """Sizes of the network. `state` and `action` are the robot's, `max_...` the programs'."""

    chunk: int = size(1)
    action: int = size(1)
    state: int = size(0)
    max_action: int = size(1)
    max_state: int = size(0)
    steps: int = size(1)
    prefix: int = size(1)
    image_tokens: int = size(0)
    language_tokens: int = size(0)
    layers: int = size(1)
    kv_heads: int = size(1)
    head_dim: int = size(1)
    expert_width: int = size(1)


@dataclass(frozen=True)
class Camera:
    """A camera that the policy saw in training: our name, the checkpoint's key, its pixels."""

    name: str
    key: str
    height: int = size(1)
    width: int = size(1)


@dataclass(frozen=True)
class JointName:
    """One joint in the policy's order, in the unit that the policy speaks."""

    name: str
    unit: str


@dataclass(frozen=True)
class Image:
    """What the vision encoder takes: pixels, and how a picture becomes them."""

    height: int = size(1)
    width: int = size(1)
    resize: str = one_of("pad", "stretch", "none")
    pad_value: float = number(-1e6, 1e6)
    low: float = number(-1e6, 1e6)
    high: float = number(-1e6, 1e6)


@dataclass(frozen=True)
class Tokenizer:
    """How an instruction becomes token ids. `newline`: one is put at its end."""

    file: str
    max_length: int = size(1)
    padding: str = one_of("longest", "max_length")
    newline: bool = one_of(True, False)


@dataclass(frozen=True)
class Normalisation:
    """Where the statistics lie and how they are used."""

    file: str
    state: str = one_of(*_MODES)
    action: str = one_of(*_MODES)
    eps: float = number(0.0, 1.0)


@dataclass(frozen=True)
class Flow:
    """The host's Euler loop: `steps` steps of `dt` from `t_start`."""

    steps: int = size(1)
    t_start: float = number(-10.0, 10.0)
    dt: float = number(-10.0, 10.0)


@dataclass(frozen=True)
class Tensor:
    """One input or output of a program, in order."""

    name: str
    dtype: str = one_of(*DTYPES.values())
    shape: tuple[int, ...] = size(1, 1 << 31)

    @property
    def nbytes(self) -> int:
        """Size of the data in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class ProgramEntry:
    """One `.pte` file.

    `arenas`: planned bytes of each arena; `constants_bytes`: what its weights take once loaded;
    `workspace_bytes`: what the first runs add, measured at export; `delegates`: how many of each;
    `leftover`: operators that no delegate took.
    """

    file: str
    method: str
    recipe: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    arenas: tuple[int, ...] = size()
    constants_bytes: int = size()
    workspace_bytes: int = size()
    delegates: dict[str, int]
    leftover: tuple[str, ...]


@dataclass(frozen=True)
class Memory:
    """Bytes that the programs take together; `total` is the sum of the others."""

    constants: int = size()
    arenas: int = size()
    workspaces: int = size()
    inputs_outputs: int = size()
    total: int = size()

    @classmethod
    def of(cls, programs: dict[str, ProgramEntry]) -> Memory:
        """Add up programs. Equal tensors of two programs are one: handed on without a copy."""
        constants = sum(program.constants_bytes for program in programs.values())
        arenas = sum(sum(program.arenas) for program in programs.values())
        workspaces = sum(program.workspace_bytes for program in programs.values())
        tensors = {t for program in programs.values() for t in (*program.inputs, *program.outputs)}
        inputs_outputs = sum(tensor.nbytes for tensor in tensors)
        total = constants + arenas + workspaces + inputs_outputs
        return cls(constants, arenas, workspaces, inputs_outputs, total)


@dataclass(frozen=True)
class FileEntry:
    """What a file of the bundle must be."""

    sha256: str
    bytes: int = size()


@dataclass(frozen=True)
class Tolerance:
    """How far a program may be from its golden vectors, relative to max(1, largest value)."""

    same_machine: float = number(0.0, 1.0)
    across_machines: float = number(0.0, 1.0)


@dataclass(frozen=True)
class Tools:
    """Versions of what made the bundle."""

    torch: str
    executorch: str
    python: str
    omni_ros: str


@dataclass(frozen=True)
class Provenance:
    """Where the bundle comes from."""

    checkpoint_sha256: str
    backbone_sha256: Union[str, None]
    options: dict[str, Union[str, int, float, bool, None]]
    tools: Tools
    machine: str
    created: str
    minutes: float = number(0.0, 1e6)
    peak_memory_bytes: int = size()


@dataclass(frozen=True)
class Manifest:
    """bundle.yaml. `joints` is "raw" where the checkpoint's joints have neither names nor units."""

    family: str
    name: str
    dimensions: Dimensions
    cameras: tuple[Camera, ...]
    empty_cameras: int = size(0, 16)
    joints: Union[tuple[JointName, ...], str]
    image: Image
    tokenizer: Tokenizer
    normalisation: Normalisation
    flow: Flow
    programs: dict[str, ProgramEntry]
    memory: Memory
    files: dict[str, FileEntry]
    golden: dict[str, str]
    tolerance: Tolerance
    provenance: Provenance
