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

#: Cameras of one policy, empty ones included.
MAX_SLOTS = 64
#: Pixels of one side of a picture.
MAX_SIDE = 1 << 16
_MODES = ("IDENTITY", "MEAN_STD", "MIN_MAX", "QUANTILES", "QUANTILE10")


@dataclass(frozen=True)
class Dimensions:
    """Sizes of the network. `state` and `action` are the robot's, `max_...` the programs'.

    `action_steps`: rows of a chunk that the checkpoint was meant to play before the next one.
    """

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
    action_steps: int = size(1)


@dataclass(frozen=True)
class Camera:
    """A camera that the policy saw in training: the robot's name of it, the checkpoint's key, its
    pixels.
    """

    name: str
    key: str
    height: int = size(1, MAX_SIDE)
    width: int = size(1, MAX_SIDE)


@dataclass(frozen=True)
class JointName:
    """One joint in the policy's order, in the unit that the policy speaks."""

    name: str
    unit: str


@dataclass(frozen=True)
class Features:
    """The checkpoint's keys of state and actions; cameras carry theirs."""

    state: str
    action: str


@dataclass(frozen=True)
class Image:
    """What the vision encoder takes: pixels, and how a picture becomes them.

    `pad_value`, `low`, `high` are on the scale of the pixels; the bytes 0 and 255 become `low` and
    `high`. `placement`: "end" pads left and top, "centre" on all sides. `clamp`: cut what
    interpolation leaves outside.
    """

    height: int = size(1, MAX_SIDE)
    width: int = size(1, MAX_SIDE)
    resize: str = one_of("pad", "stretch", "none")
    pad_value: float = number(-1e6, 1e6)
    low: float = number(-1e6, 1e6)
    high: float = number(-1e6, 1e6)
    placement: str = one_of("end", "centre")
    clamp: bool = one_of(True, False)


@dataclass(frozen=True)
class Prefix:
    """What the backbone sees, in order: the image slots, the prompt, the state (one token).

    `state`: where it comes in: there ("prefix", SmolVLA), as the first token of what the action head
    makes actions of ("suffix", π0), or as words of the prompt ("prompt", π0.5).

    A slot is `start_marks` tokens, the image's, `end_marks` tokens. Slots take the cameras that are
    present first; of those that are missing, up to `empty_cameras` follow with their marks only.
    """

    slots: int = size(0, MAX_SLOTS)
    start_marks: int = size(0, 64)
    end_marks: int = size(0, 64)
    rope_base: float = number(1.0, 1e12)
    state: str = one_of("prefix", "suffix", "prompt", default="prefix")


@dataclass(frozen=True)
class Tokenizer:
    """How an instruction becomes token ids. `newline`: one is put at its end if it has none.

    `padding` says what training did; programs take `max_length` ids and a mask either way, the
    places on `padding_side` filled with the id `pad_token`. `state_width`: values that a state is
    padded to with zeros before a prompt names it; 0: it is not.
    """

    file: str
    max_length: int = size(1)
    padding: str = one_of("longest", "max_length")
    newline: bool = one_of(True, False)
    pad_token: int = size()
    padding_side: str = one_of("right", "left")
    state_width: int = size(0, 4096, default=0)


@dataclass(frozen=True)
class Embeddings:
    """The token table, from which the host takes a row a token: an .npy file [rows, width].

    It is meant to be memory-mapped. numpy has no bfloat16: such a table is stored as uint16, the
    upper half of each float32.
    """

    file: str
    dtype: str = one_of("float32", "float16", "bfloat16")
    rows: int = size(1)
    width: int = size(1)


@dataclass(frozen=True)
class Normalisation:
    """Where the statistics lie and how they are used."""

    file: str
    state: str = one_of(*_MODES)
    action: str = one_of(*_MODES)
    eps: float = number(0.0, 1e-3)


@dataclass(frozen=True)
class Flow:
    """The host's Euler loop: `steps` steps of `dt` from `t_start`, so step k is at t_start + k dt.

    A time becomes [sine, cosine] at geometrically spaced periods from `min_period` to `max_period`.
    """

    steps: int = size(1, 1000)
    t_start: float = number(-10.0, 10.0)
    dt: float = number(-10.0, 10.0)
    min_period: float = number(1e-9, 1e9)
    max_period: float = number(1e-9, 1e9)


@dataclass(frozen=True)
class Rtc:
    """Real-time chunking as omni_ros.policy.rtc names it. `enabled`: the checkpoint asks for it."""

    enabled: bool = one_of(True, False)
    schedule: str = one_of("LINEAR", "EXP", "ONES", "ZEROS")
    execution_horizon: int = size(1, 1 << 20)
    max_guidance_weight: float = number(0.0, 1e6)
    window: str = one_of("horizon", "paper")
    padding: str = one_of("last", "zero")


@dataclass(frozen=True)
class Conventions:
    """What training did to states and actions outside normalisation, see
    omni_ros.policy.conventions.

    `aloha`: whose constants turn ALOHA's joints into the policy's. `relative`: for each action
    whether it is relative to the same value of the observation's state; empty: none is.
    """

    aloha: str = one_of("none", "openpi", "lerobot", default="none")
    relative: tuple[bool, ...] = ()


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
    `leftover`: operators that no delegate took; `difference`: the largest from the same network in
    PyTorch and float32, relative to max(1, largest value), measured at export.
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
    difference: float = number(0.0, 1e9)


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

    same_machine: float = number(0.0, 1e-2)
    across_machines: float = number(0.0, 0.5)


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
    """bundle.yaml. `joints` are the actions', `state_joints` the state's; "raw" stands for joints
    without names and units, which no robot may be moved by. `rename_map`: a robot's keys to the
    checkpoint's, as its processors say; cameras are named by the former already.
    """

    family: str
    name: str
    dimensions: Dimensions
    cameras: tuple[Camera, ...]
    empty_cameras: int = size(0, 16)
    rename_map: dict[str, str]
    features: Features
    joints: Union[tuple[JointName, ...], str]
    state_joints: Union[tuple[JointName, ...], str]
    image: Image
    prefix: Prefix
    tokenizer: Tokenizer
    embeddings: Embeddings
    normalisation: Normalisation
    flow: Flow
    rtc: Rtc
    programs: dict[str, ProgramEntry]
    memory: Memory
    files: dict[str, FileEntry]
    golden: dict[str, str]
    tolerance: Tolerance
    provenance: Provenance
    conventions: Conventions = Conventions()
